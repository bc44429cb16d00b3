/** A seeded source of numbers in 0..1 (mulberry32): the same mutations at every run. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Holder = Record<string, unknown>;
type Change = (holder: Holder, key: string, value: unknown) => void;

const CHANGES: Readonly<Record<string, Change>> = {
  drop: (holder, key) => {
    delete holder[key];
  },
  rename: (holder, key, value) => {
    delete holder[key];
    holder[`${key}_renamed`] = value;
  },
  retype: (holder, key, value) => {
    holder[key] = typeof value === 'string' ? { text: value } : typeof value === 'object' ? 7 : String(value);
  },
  to_list: (holder, key, value) => {
    holder[key] = [value];
  },
  huge: (holder, key, value) => {
    holder[key] = typeof value === 'number' ? 1e300 : '9'.repeat(10_000);
  },
  huge_exponent: (holder, key) => {
    holder[key] = '1e309';
  },
  negative: (holder, key, value) => {
    holder[key] = typeof value === 'number' ? -value - 1 : `-${String(value)}`;
  },
  nan_text: (holder, key) => {
    holder[key] = 'NaN';
  },
  none: (holder, key) => {
    holder[key] = null;
  },
  empty: (holder, key) => {
    holder[key] = '';
  },
  nul_character: (holder, key, value) => {
    holder[key] = `${String(value)}\u0000`;
  },
  lone_surrogate: (holder, key, value) => {
    holder[key] = `${String(value)}\ud800`;
  },
  other_unit: (holder, key, value) => {
    holder[key] = typeof value === 'number' ? value * 1000 : `${String(value)}000`;
  },
};

export const MUTATIONS = Object.keys(CHANGES);

/** A changed deep copy of a record: one mutation of one field somewhere inside it. */
export function mutate(record: unknown, random: () => number): { mutation: string; record: unknown } {
  const copy: unknown = structuredClone(record);
  const mutation = MUTATIONS[Math.floor(random() * MUTATIONS.length)] ?? 'drop';
  let holder = copy;
  for (;;) {
    if (holder === null || typeof holder !== 'object') return { mutation: 'none', record: null };
    const keys = Object.keys(holder);
    const key = keys[Math.floor(random() * keys.length)];
    if (key === undefined) return { mutation, record: copy };
    const value = (holder as Holder)[key];
    if (value !== null && typeof value === 'object' && Object.keys(value).length > 0 && random() < 0.6) {
      holder = value;
      continue;
    }
    CHANGES[mutation]?.(holder as Holder, key, value);
    return { mutation, record: copy };
  }
}

/** Freezes a value all the way down, so that a parser that writes to its input throws. */
export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}
