/** A seeded source of numbers in 0..1 (mulberry32): the same mutations in every run. */
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

/** A change that depends only on the value. */
function to(make: (value: unknown) => unknown): Change {
  return (holder, key, value) => {
    holder[key] = make(value);
  };
}

/** Multiplies numbers, and texts that are numbers; other values get digits appended. */
function times(factor: number): Change {
  return to((value) => {
    if (typeof value === 'number') return value * factor;
    const isNumeric = typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value));
    return isNumeric ? String(Number(value) * factor) : `${String(value)}000`;
  });
}

/** By the type of the value: venues send numbers as numbers or texts. */
function numberOrText(number: number, text: string): Change {
  return to((value) => (typeof value === 'number' ? number : text));
}

function nested(levels: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { value };
  return value;
}

function halved(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, value.length / 2);
  if (typeof value === 'number') return Math.trunc(value / 10);
  if (Array.isArray(value)) return value.slice(0, value.length / 2);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.slice(0, entries.length / 2));
}

/** Keys and values that break a program that trusts its input. */
const TREACHEROUS = { price: '0.5', size: '1', toString: null, valueOf: 7 };

/** `{}` with an own property of this name, `__proto__` too. */
function define(holder: Holder, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

const CHANGES: Readonly<Record<string, Change>> = {
  drop: (holder, key) => {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  },
  rename: (holder, key, value) => {
    delete holder[key];
    holder[`${key}_renamed`] = value;
  },
  other_case: (holder, key, value) => {
    delete holder[key];
    holder[key === key.toUpperCase() ? key.toLowerCase() : key.toUpperCase()] = value;
  },
  swap: (holder, key, value) => {
    const keys = Object.keys(holder);
    const other = keys[(keys.indexOf(key) + 1) % keys.length] ?? key;
    holder[key] = holder[other];
    holder[other] = value;
  },
  duplicate: (holder, key, value) => {
    if (!Array.isArray(holder)) define(holder, `${key} `, value);
    else if (value === null || typeof value !== 'object') holder.push(value);
    else holder.push({ ...value, [Object.keys(value).at(-1) ?? 'x']: '0.123' });
  },
  retype: to((value) => (typeof value === 'string' ? { text: value } : typeof value === 'object' ? 7 : String(value))),
  to_list: to((value) => [value]),
  to_object: to((value) => (Array.isArray(value) ? { ...value } : { value })),
  to_boolean: to((value) => value !== true),
  boolean_text: to(() => 'true'),
  none: to(() => null),
  empty: to((value) => (Array.isArray(value) ? [] : '')),
  truncate: to(halved),
  many: to((value) => (Array.isArray(value) ? Array.from({ length: 300 }, (_, at) => value[at % value.length]) : 0)),
  deep: to(() => nested(1_500)),
  unknown_word: to(() => 'something_new'),
  inherited_word: to((value) => (typeof value === 'string' && value.length % 2 === 0 ? '__proto__' : 'constructor')),
  proto_key: (holder) => define(holder, '__proto__', TREACHEROUS),
  constructor_key: (holder) => {
    define(holder, 'constructor', { prototype: TREACHEROUS });
    define(holder, 'hasOwnProperty', null);
  },
  huge: numberOrText(1e300, '9'.repeat(10_000)),
  huge_exponent: to(() => '1e309'),
  tiny: numberOrText(5e-324, '1e-400'),
  negative: to((value) => (typeof value === 'number' ? -value - 1 : `-${String(value)}`)),
  negative_zero: numberOrText(-0, '-0.00'),
  nan_text: to(() => 'NaN'),
  infinity_text: to(() => '-Infinity'),
  hex_text: to(() => '0x1F'),
  spaced: to((value) => ` ${String(value)} `),
  foreign_digits: to(() => '٠٫٥'),
  one_and_a_bit: numberOrText(1.0000001, '1.0000000000000000001'),
  nul_character: to((value) => `${String(value)}\u0000`),
  lone_surrogate: to((value) => `${String(value)}\ud800`),
  milli_unit: times(1_000),
  micro_unit: times(1_000_000),
  smaller_unit: times(1 / 1_000),
  year_9999: numberOrText(253_402_300_799_999, '9999-12-31T23:59:59.999999999Z'),
  beyond_dates: numberOrText(8_640_000_000_000_001, '+275760-09-13T00:00:00.001Z'),
  zero_time: numberOrText(0, '0001-01-01T00:00:00Z'),
  before_christ: numberOrText(-62_200_000_000_000, '-000001-01-01T00:00:00Z'),
  no_such_day: to(() => '2026-02-30T25:61:61Z'),
};

export const MUTATIONS = Object.keys(CHANGES);

/** The path of a value in a record; a step below a text enters the JSON in the text. */
type Path = readonly string[];

/** Every field of a record; of lists, the first two items and the last. */
function pathsOf(record: unknown): Path[] {
  const paths: Path[] = [];
  const visit = (value: unknown, path: Path): void => {
    const holder = jsonInside(value);
    if (holder === null || typeof holder !== 'object') return;
    const keys = Object.keys(holder);
    const visited = Array.isArray(holder) ? [...new Set([...keys.slice(0, 2), ...keys.slice(-1)])] : keys;
    for (const key of visited) {
      paths.push([...path, key]);
      visit((holder as Holder)[key], [...path, key]);
    }
  };
  visit(record, []);
  return paths;
}

/** The parsed value of a text that contains a JSON list or object. */
function jsonInside(value: unknown): unknown {
  if (typeof value !== 'string' || !/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch (error) {
    if (error instanceof SyntaxError) return value;
    throw error;
  }
}

/** A copy of a record with one mutation at one place. */
export function mutateAt(record: unknown, path: Path, mutation: string): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return record;
  const holder = jsonInside(record);
  if (holder === null || typeof holder !== 'object') return record;
  const copy = (Array.isArray(holder) ? [...holder] : { ...holder }) as Holder;
  if (rest.length === 0) CHANGES[mutation]?.(copy, key, copy[key]);
  else copy[key] = mutateAt(copy[key], rest, mutation);
  return typeof record === 'string' ? JSON.stringify(copy) : copy;
}

const PATHS = new WeakMap<object, Path[]>();

/** A copy of a record with one mutation of one field. */
export function mutate(record: unknown, random: () => number): { mutation: string; record: unknown } {
  if (record === null || typeof record !== 'object') return { mutation: 'none', record: null };
  const paths = PATHS.get(record) ?? pathsOf(record);
  PATHS.set(record, paths);
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)];
  // Equally often near the top, where identity and status are, and deep down, where most fields are.
  const depth = 1 + Math.floor(random() * 4);
  const path = pick(paths.filter(({ length }) => length === depth)) ?? pick(paths) ?? [];
  const mutation = pick(MUTATIONS) ?? 'drop';
  return { mutation: `${mutation} at ${path.join('.')}`, record: mutateAt(record, path, mutation) };
}

/** A record with shortened lists: the position of a field among equal items does not matter. */
function slim(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.slice(0, 4).map(slim);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, slim(item)]));
}

/** A few records that together have all fields of these, and the fields that each of them adds. Items of a list count as one field. */
export function representatives(records: Iterable<unknown>): { record: unknown; paths: Path[] }[] {
  const seen = new Set<string>();
  const chosen: { record: unknown; paths: Path[] }[] = [];
  for (const whole of records) {
    const record = slim(whole);
    const paths = pathsOf(record).filter((path) => {
      const shape = `${path.map((step) => (/^\d+$/.test(step) ? '#' : step)).join('.')}`;
      return !seen.has(shape) && seen.add(shape);
    });
    if (paths.length > 0) chosen.push({ record, paths });
  }
  return chosen;
}

/** Freezes a value deeply, so that a parser that writes to its input throws. */
export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}
