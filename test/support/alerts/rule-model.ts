import type { Observed } from '../../../src/domain/alerts/condition.ts';
import type { MarketRule } from '../../../src/domain/alerts/market-rule.ts';
import type { Firing, Rule } from '../../../src/domain/alerts/rule.ts';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';

/*
 * The definitions of docs/alerts.md, read word by word: each observation looks at the whole list again. Values are whole numbers of
 * millionths, so that they are exact.
 */

const SCALE = 1_000_000n;

function num(text: string | null): bigint {
  const [whole = '', digits = ''] = (text ?? '').split('.');
  if (digits.length > 6) throw new RangeError(`${text} has more digits than the model`);
  return BigInt(whole + digits.padEnd(6, '0'));
}

/** A state of a market. */
export interface ModelState {
  atMs: number;
  status: MarketRecord['status'];
}

/** The firings of a rule on the states of one market. The number of a change is its time in microseconds. */
export function modelMarketFirings(rule: MarketRule, states: readonly ModelState[]): Pick<Firing, 'n' | 'atMs'>[] {
  const fired: Pick<Firing, 'n' | 'atMs'>[] = [];
  for (const [index, { atMs, status }] of states.entries()) {
    const former = states[index - 1]?.status;
    const isNews =
      rule.condition === 'new_market'
        ? index === 0
        : rule.condition === 'resolution'
          ? index > 0 && reachedBy(status, former).some((state) => rule.states?.includes(state))
          : former !== undefined && status !== 'open' && !(status === 'settled' && former === 'resolved');
    const last = fired.at(-1);
    const isCool = last === undefined || (rule.cooldownMs !== null && atMs - last.atMs >= rule.cooldownMs);
    if (isNews && isCool && atMs >= rule.startMs && atMs < rule.endMs) fired.push({ n: BigInt(atMs) * 1_000n, atMs });
  }
  return fired;
}

/** The states of the resolution that a market with these statuses reaches: a settled market was determined before. */
function reachedBy(status: string, former: string | undefined): ('resolved' | 'settled')[] {
  if (status === 'resolved') return ['resolved'];
  if (status !== 'settled') return [];
  return former === 'resolved' ? ['settled'] : ['resolved', 'settled'];
}

/** The firings of a rule on the observations of one outcome. */
export function modelFirings(rule: Rule, list: readonly Observed[]): Pick<Firing, 'n' | 'atMs'>[] {
  const fired: { n: bigint; atMs: number; index: number }[] = [];
  const mayFire = (atMs: number) => {
    const last = fired.at(-1);
    return last === undefined || (rule.cooldownMs !== null && atMs - last.atMs >= rule.cooldownMs);
  };
  const first = list.findIndex(({ atMs }) => atMs >= rule.startMs);
  const before = first === -1 ? list : list.slice(0, first);
  const quote = before.filter(({ size }) => size === null).at(-1);
  if (rule.seesStart && quote && rule.startMs < rule.endMs && meets(rule, [quote], 0, -1)) {
    fired.push({ n: quote.n, atMs: rule.startMs, index: list.indexOf(quote) });
  }
  for (const [index, { n, atMs }] of list.entries()) {
    if (atMs < rule.startMs || atMs >= rule.endMs || !mayFire(atMs)) continue;
    if (meets(rule, list, index, fired.at(-1)?.index ?? -1)) fired.push({ n, atMs, index });
  }
  return fired.map(({ n, atMs }) => ({ n, atMs }));
}

/** `restart` is the place of the last firing, -1 without one. */
function meets(rule: Rule, list: readonly Observed[], index: number, restart: number): boolean {
  const { condition, direction, windowMs = 0, windows } = rule;
  const threshold = num(rule.threshold);
  const now = list[index];
  if (!now) return false;
  const price = num(now.price);
  const previous = list[index - 1];
  switch (condition) {
    case 'above':
      return price >= threshold;
    case 'below':
      return price <= threshold;
    case 'crosses_above':
      return previous !== undefined && num(previous.price) < threshold && price >= threshold;
    case 'crosses_below':
      return previous !== undefined && num(previous.price) > threshold && price <= threshold;
    case 'spread': {
      if (now.bid === null || now.ask === null) return false;
      const spread = num(now.ask) - num(now.bid);
      return direction === 'at_most' ? spread <= threshold : spread >= threshold;
    }
    case 'trade':
      return now.size !== null && price * num(now.size) >= threshold * SCALE;
    case 'change': {
      // A price stands until the next observation.
      const standing = list.slice(0, index).filter((_, at) => {
        const until = list[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
        return until > now.atMs - windowMs && at >= restart;
      });
      return standing.some((reference) => isMove(rule, num(reference.price), price, threshold));
    }
    case 'volume': {
      if (now.size === null) return false;
      const notional = (from: number, to: number, after: number) =>
        list
          .slice(after + 1, index + 1)
          .filter(({ size, atMs }) => size !== null && atMs > from && atMs <= to)
          .reduce((sum, trade) => sum + num(trade.price) * num(trade.size), 0n);
      const start = now.atMs - windowMs;
      const present = notional(start, now.atMs, restart);
      if (windows === undefined) return present >= threshold * SCALE;
      const former = notional(start - windows * windowMs, start, -1);
      return former > 0n && present * BigInt(windows) * SCALE >= threshold * former;
    }
  }
}

function isMove({ direction, unit }: Rule, from: bigint, to: bigint, threshold: bigint): boolean {
  const isUp = to > from;
  if (to === from || (direction === 'up' && !isUp) || (direction === 'down' && isUp)) return false;
  const move = isUp ? to - from : from - to;
  return unit === 'percent' ? from > 0n && move * 100n * SCALE >= threshold * from : move >= threshold;
}
