/* tokenizer_tables.c - hash tables and the trie of added tokens. */
#include "core/rng.h"
#include "text/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

static ink_status table_size(size_t entries, size_t *slots)
{
    size_t need;
    *slots = 16;
    if (!mul_size(entries, 2, &need))
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory: table of %zu entries", entries);
    while (*slots < need)
        *slots *= 2;
    return INK_OK;
}

ink_status pair_map_init(pair_map *m, size_t entries)
{
    size_t slots;
    TRY(table_size(entries, &slots));
    m->slots = alloc_array(slots, sizeof *m->slots);
    if (!m->slots)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < slots; i++)
        m->slots[i].value = -1;
    m->mask = slots - 1;
    return INK_OK;
}

bool pair_map_put(pair_map *m, uint64_t key, uint32_t rank, int32_t value)
{
    size_t i = rng_mix(key) & m->mask;
    for (; m->slots[i].value >= 0; i = (i + 1) & m->mask)
        if (m->slots[i].key == key)
            return false;
    m->slots[i] = (pair_slot){key, rank, value};
    return true;
}

const pair_slot *pair_map_find(const pair_map *m, uint64_t key)
{
    for (size_t i = rng_mix(key) & m->mask; m->slots[i].value >= 0; i = (i + 1) & m->mask)
        if (m->slots[i].key == key)
            return &m->slots[i];
    return NULL;
}

void pair_map_free(pair_map *m)
{
    free(m->slots);
    *m = (pair_map){0};
}

ink_status token_trie_init(token_trie *trie, size_t total_length)
{
    size_t nodes;
    if (!add_size(total_length, 1, &nodes) || nodes > INT32_MAX)
        return failure(INK_RESOURCE_EXHAUSTED, "added_tokens: %zu bytes of text are too many", total_length);
    TRY(pair_map_init(&trie->edges, nodes));
    trie->token = alloc_array(nodes, sizeof *trie->token);
    if (!trie->token)
        return INK_RESOURCE_EXHAUSTED;
    trie->token[0] = -1;
    trie->nodes = 1;
    return INK_OK;
}

static uint64_t edge_key(int32_t node, char byte) { return (uint64_t)node << 8 | (unsigned char)byte; }

void token_trie_add(token_trie *trie, const char *text, size_t n, int32_t id)
{
    int32_t node = 0;
    if (!n)
        return;
    trie->first[(unsigned char)text[0]] = true;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = edge_key(node, text[i]);
        const pair_slot *edge = pair_map_find(&trie->edges, key);
        if (edge) {
            node = edge->value;
            continue;
        }
        pair_map_put(&trie->edges, key, 0, trie->nodes);
        node = trie->nodes++;
        trie->token[node] = -1;
    }
    if (trie->token[node] < 0)
        trie->token[node] = id;
}

int32_t token_trie_longest(const token_trie *trie, const char *text, size_t n, size_t *length)
{
    int32_t node = 0, found = -1;
    if (!n || !trie->first[(unsigned char)text[0]])
        return -1;
    for (size_t i = 0; i < n; i++) {
        const pair_slot *edge = pair_map_find(&trie->edges, edge_key(node, text[i]));
        if (!edge)
            break;
        node = edge->value;
        if (trie->token[node] >= 0) {
            found = trie->token[node];
            *length = i + 1;
        }
    }
    return found;
}

void token_trie_free(token_trie *trie)
{
    pair_map_free(&trie->edges);
    free(trie->token);
    *trie = (token_trie){0};
}
