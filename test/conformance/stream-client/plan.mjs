/**
 * The seeded script of one stream: a ledger of changes, and the connections that a client gets with their faults.
 *
 * @typedef {{ seq: number, epoch: number, isVisible: boolean, type: string, message: Record<string, any> }} Change
 * @typedef {'cut' | 'end' | 'silence' | 'invalid' | 'lagged' | 'refuse' | 'reset' | 'unauthorized' | 'done'} Fault
 * @typedef {{ fault: Fault, count: number, status: number, share: number, isSlow: boolean, repeated: number, lost: number,
 *   loss: 'expired' | 'epoch' | undefined, stale: string | undefined, heartbeatAfter: number, closeCode: number }} Connection
 */

const START_MS = Date.parse('2026-01-02T03:04:05.000Z');
/** The time of the last heartbeat, at which a client stops. */
export const LAST_CHECKED_AT = '2030-01-01T00:00:00.000Z';
const FAULTS = ['cut', 'cut', 'end', 'silence', 'invalid', 'lagged', 'refuse', 'reset'];
const NO_MESSAGE = new Set(['refuse', 'reset', 'unauthorized']);
const STALE_REASONS = ['publisher_stalled', 'publisher_gone', 'database_unreachable'];

/** Numbers of [0, 1) that depend on the seed only (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @returns {{ query: { channels: string[], snapshot: boolean }, ledger: Change[], connections: Connection[] }} */
export function planOf(seed) {
  const random = randomOf(seed);
  const int = (low, high) => low + Math.floor(random() * (high - low + 1));
  const pick = (values) => values[int(0, values.length - 1)];
  const connections = Array.from({ length: int(3, 8) }, (_, place) => {
    const fault = pick(FAULTS);
    return {
      fault,
      count: NO_MESSAGE.has(fault) ? 0 : int(0, 7),
      status: pick([429, 502, 503, 504]),
      // A cut sends so much of the next message; 0: it falls between two messages.
      share: pick([0, 0.02, 0.3, 0.7, 0.999]),
      isSlow: random() < 0.25,
      repeated: place > 0 && random() < 0.4 ? int(1, 5) : 0,
      lost: int(1, 6),
      loss: place > 0 && !NO_MESSAGE.has(fault) && random() < 0.2 ? pick(['expired', 'epoch']) : undefined,
      stale: random() < 0.2 ? pick(STALE_REASONS) : undefined,
      heartbeatAfter: int(0, 7),
      closeCode: pick([1011, 1012]),
    };
  });
  const isRevoked = random() < 0.15;
  connections.push({
    ...connections[0],
    fault: isRevoked ? 'unauthorized' : 'done',
    count: 0,
    repeated: int(0, 3),
    loss: undefined,
  });
  const ledger = [];
  const needed = connections.reduce((sum, { count, loss, lost }) => sum + count + (loss ? lost : 0), 0) + int(1, 20);
  for (let seq = int(1, 1_000), visible = 0; visible < needed; seq += 1) {
    const isVisible = random() < 0.7;
    if (isVisible) visible += 1;
    ledger.push({ seq, epoch: 1, isVisible, ...changeOf(seq, { int, pick }) });
  }
  return {
    query: { channels: ['prices', 'trades', 'books', 'markets', 'candles'], snapshot: random() < 0.3 },
    ledger,
    connections,
  };
}

/** A change in the form of its message, without its number. */
function changeOf(place, { int, pick }) {
  const outcome = { market_id: 'm1', outcome_id: 'm1-yes' };
  const digits = () =>
    `0.${String(int(1, 999_999)).padStart(6, '0')}${String(int(1, 999_999)).padStart(6, '0')}${int(1, 9)}`;
  const time = Math.floor(START_MS / 1_000) + place;
  const level = { price: 0.4, size: 10 };
  const forms = {
    price: () => ({ ...outcome, data: { ...outcome, as_of: time, price: exact(digits()), best_bid: 0.4 } }),
    trade: () => ({
      ...outcome,
      data: {
        ...outcome,
        trade_id: `t${place}`,
        timestamp: time,
        price: 0.5,
        size: exact(`12345678${digits().slice(1)}`),
      },
    }),
    book: () => ({ ...outcome, data: { ...outcome, as_of: time, bids: [level], asks: [] } }),
    gap: () => {
      const start = time - int(60, 600);
      const feed = { reason: 'feed', gap_id: `gap_${place}`, affected: 'books', cause: 'silent' };
      return {
        market_id: 'm1',
        data: pick([
          { reason: 'backfill', series: 'trades', start, end: start + 60 },
          { ...feed, start, end: null },
          { ...feed, start, end: start + 30 },
        ]),
      };
    },
  };
  const type = pick(['price', 'price', 'trade', 'trade', 'trade', 'book', 'gap']);
  return { type, message: forms[type]() };
}

/** A number whose digits a double does not have. `textOf` writes it as a number. */
function exact(digits) {
  return { exact: digits };
}

/** The JSON of a message. */
export function textOf(message) {
  return JSON.stringify(message, (_name, value) =>
    value?.exact === undefined ? value : `\u0001${value.exact}\u0001`,
  ).replaceAll(/"\\u0001([^"\\]+)\\u0001"/g, '$1');
}

/** The time of a message, which only orders messages. */
export function timeOf(count) {
  return new Date(START_MS + count * 1_000).toISOString();
}
