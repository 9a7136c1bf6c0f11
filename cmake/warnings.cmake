# Flags of every target of ours. Numerics are a contract: no fast-math, and a*b+c is fused only where the source says fma.
add_library(ink_flags INTERFACE)
target_compile_options(ink_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -ffp-contract=off -fno-math-errno -fvisibility=hidden)
if(INK_WERROR)
  target_compile_options(ink_flags INTERFACE -Werror)
endif()
add_library(ink_flags_link INTERFACE) # for targets that only link
if(INK_SANITIZE)
  target_compile_options(ink_flags INTERFACE -fsanitize=${INK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ink_flags_link INTERFACE -fsanitize=${INK_SANITIZE})
endif()
target_link_libraries(ink_flags INTERFACE ink_flags_link)
