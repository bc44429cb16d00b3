import { Counter, Gauge, type Registry } from 'prom-client';

/** Reads of the API from memory. */
export function readMetrics(registry: Registry) {
  const registers = [registry];
  return {
    cacheLookups: new Counter({
      name: 'answer_cache_lookups_total',
      help: 'Market reads answered by markets in memory (memory), by a kept answer (hit), by a load in flight (shared) or by a new load (miss)',
      labelNames: ['result'],
      registers,
    }),
    memoryEntries: new Gauge({
      name: 'read_memory_entries',
      help: 'Markets and answers in the memory of this process',
      labelNames: ['part'],
      registers,
    }),
    memoryBytes: new Gauge({
      name: 'read_memory_bytes',
      help: 'Approximate memory of markets and answers; API_MEMORY_MB limits the sum',
      labelNames: ['part'],
      registers,
    }),
    memoryFallback: new Gauge({
      name: 'read_memory_fallback',
      help: '1 while reads use the database, because the journal was not confirmed within a second, else 0',
      registers,
    }),
    memoryLoaded: new Gauge({
      name: 'read_memory_loaded',
      help: '1 when every open market was read into memory, or as many as it takes, else 0',
      registers,
    }),
  };
}
