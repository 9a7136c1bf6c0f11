# A file named *_avx2.c, *_avx512.c or *_amx.c is compiled for that instruction set and nothing else is; which of them
# runs is chosen at run time (src/cpu/isa.h).
set(INK_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(INK_ISA_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mprefer-vector-width=512)
set(INK_ISA_FLAGS_amx ${INK_ISA_FLAGS_avx512} -mamx-tile -mamx-bf16)
function(ink_set_isa_flags)
  foreach(file ${ARGN})
    foreach(isa avx2 avx512 amx)
      if(file MATCHES "_${isa}\\.c$")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${INK_ISA_FLAGS_${isa}}")
      endif()
    endforeach()
  endforeach()
endfunction()
