import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkedPayouts,
  isDecided,
  type OutcomePayout,
  type ResolutionChange,
  type ResolutionStanding,
  type ResolutionStep,
  resolutionChanges,
} from '../../../../src/domain/markets/resolution.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';

const NOWHERE: ResolutionStanding = { state: 'none' };
const paying = (winner: 'yes' | 'no'): OutcomePayout[] =>
  (['yes', 'no'] as const).map((outcomeId) => ({ outcomeId, payout: decimal(outcomeId === winner ? '1' : '0') }));
const YES = paying('yes');
const NO = paying('no');

/** Where a market stands after these rows, as the store reads it: the last payouts of the present state count. */
function standingAfter(rows: readonly ResolutionChange[]): ResolutionStanding {
  const last = rows.at(-1);
  if (!last) return NOWHERE;
  const run = rows.slice(rows.findLastIndex(({ state }) => state !== last.state) + 1);
  const payouts = run.findLast((row) => row.payouts !== undefined)?.payouts;
  return { state: last.state, round: last.round, payouts, rawState: last.facts?.rawState };
}

/** The timeline after a reader got these accounts of a venue, one after the other. */
function timelineOf(accounts: readonly (readonly ResolutionStep[])[]): ResolutionChange[] {
  const rows: ResolutionChange[] = [];
  for (const steps of accounts) rows.push(...resolutionChanges(standingAfter(rows), steps));
  return rows;
}

const words = (rows: readonly ResolutionChange[]) => rows.map(({ transition }) => transition).join(' ');

describe('the timeline of a venue that counts rounds', () => {
  const step = (state: ResolutionStep['state'], round: number, payouts?: OutcomePayout[]): ResolutionStep => ({
    state,
    round,
    ...(payouts && { payouts }),
  });
  /** Proposals, each disputed but the last one, and the result of some. */
  const lives = fc
    .record({ rounds: fc.integer({ min: 1, max: 4 }), isDisputed: fc.boolean(), isResolved: fc.boolean() })
    .map(({ rounds, isDisputed, isResolved }) => {
      const steps: ResolutionStep[] = [];
      for (let round = 1; round <= rounds; round += 1) {
        steps.push(step('proposed', round));
        if (round < rounds || isDisputed) steps.push(step('disputed', round));
      }
      if (isResolved) steps.push(step('resolved', rounds, YES));
      return steps;
    });

  it('has each step once, in order, when a reader gets any accounts', () => {
    fc.assert(
      fc.property(lives, fc.array(fc.nat(20), { maxLength: 30 }), (life, seen) => {
        const isPending = life.at(-1)?.state !== 'resolved';
        // A pending account after the result takes it back.
        const pending = isPending ? life : life.slice(0, -1);
        const accounts = seen.map((count) => pending.slice(0, 1 + (count % pending.length)));
        const rows = timelineOf([...accounts, life]);
        expect(rows.map(({ state, round }) => [state, round])).toEqual(life.map(({ state, round }) => [state, round]));
      }),
      { numRuns: 300 },
    );
  });

  it('marks the steps before the last one as history when a reader gets several at once', () => {
    const rows = timelineOf([[step('proposed', 1), step('disputed', 1), step('proposed', 2)]]);
    expect(rows.map(({ source }) => source)).toEqual(['history', 'history', 'route']);
  });

  it('has the next rounds when an account omits the earlier ones, and none of them twice', () => {
    const rows = timelineOf([
      [step('proposed', 1)],
      [step('proposed', 2)],
      [step('disputed', 2)],
      [step('disputed', 1)],
      [step('disputed', 3)],
      [step('proposed', 3), step('disputed', 3)],
    ]);
    expect(rows.map(({ state, round }) => `${state} ${round}`)).toEqual([
      'proposed 1',
      'proposed 2',
      'disputed 2',
      'disputed 3',
    ]);
  });

  it('has a new round after a result, and no row for the rounds before it', () => {
    const first = [step('proposed', 1), step('resolved', 1, YES)];
    const rows = timelineOf([first, [step('proposed', 1), step('disputed', 1), step('proposed', 2)]]);
    expect(words(rows)).toBe('proposed resolved reopened proposed');
    expect(rows.map(({ source, round }) => [source, round])).toEqual([
      ['history', 1],
      ['route', 1],
      ['route', undefined],
      ['route', 2],
    ]);
  });

  it.each<[string, ResolutionStep[], string]>([
    ['proposed', [step('proposed', 1)], 'reopened proposed'],
    ['disputed', [step('proposed', 1), step('disputed', 1)], 'disputed'],
  ])('does not stay resolved when the venue calls the result %s', (state, account, expected) => {
    const first = [step('proposed', 1), step('resolved', 1, YES)];
    const rows = timelineOf([first, account, account]);
    expect(words(rows)).toBe(`proposed resolved ${expected}`);
    expect(rows.at(-1)?.state).toBe(state);
  });

  it.each<[string, ResolutionStep]>([
    ['proposed', step('proposed', 2)],
    ['disputed', step('disputed', 2)],
  ])('has the result when its account names fewer rounds than the %s market has seen', (_state, before) => {
    const rows = timelineOf([[before], [step('proposed', 1), step('resolved', 1, YES)]]);
    expect(words(rows)).toBe(`${before.state} resolved`);
  });

  it('has a correction when the account of another result names fewer rounds', () => {
    const rows = timelineOf([[step('resolved', 2, YES)], [step('proposed', 1), step('resolved', 1, NO)]]);
    expect(words(rows)).toBe('resolved corrected');
  });

  it('has a row when another result is proposed in the same round', () => {
    const rows = timelineOf([[step('proposed', 1, YES)], [step('proposed', 1, NO)], [step('proposed', 1)]]);
    expect(rows.map(({ payouts }) => payouts)).toEqual([YES, NO]);
  });
});

describe('the timeline of a result whose first account had no rounds', () => {
  it('has a correction, and not the proposals that led to it, when a later account names them', () => {
    const proposed: ResolutionStep = { state: 'proposed', round: 1 };
    const rows = timelineOf([
      [{ state: 'resolved', payouts: YES }],
      [proposed, { state: 'resolved', round: 1, payouts: NO }],
      [proposed, { state: 'resolved', round: 1, payouts: NO }],
    ]);
    expect(words(rows)).toBe('resolved corrected');
  });
});

describe('the timeline of a venue without rounds', () => {
  const resolved = (payouts: OutcomePayout[]): ResolutionStep => ({ state: 'resolved', payouts });
  const settled = (payouts: OutcomePayout[]): ResolutionStep[] => [resolved(payouts), { state: 'settled', payouts }];
  const paid = (payouts: OutcomePayout[]): ResolutionStep => ({ state: 'settled', payouts });
  const disputed = (payouts: OutcomePayout[]): ResolutionStep[] => [resolved(payouts), { state: 'disputed' }];
  const voided: ResolutionStep[] = [{ state: 'voided', reason: 'refund' }];
  const unknown = (rawState: string): ResolutionStep[] => [{ state: 'unknown', facts: { rawState } }];

  it.each<[string, ResolutionStep[][], string]>([
    ['resolved, then settled', [[resolved(YES)], settled(YES)], 'resolved settled'],
    ['settled before anybody looked', [settled(YES)], 'resolved settled'],
    [
      'disputed and confirmed',
      [[resolved(YES)], disputed(YES), [resolved(YES)], settled(YES)],
      'resolved disputed resolved settled',
    ],
    [
      'disputed and amended',
      [[resolved(YES)], disputed(YES), [resolved(NO)], settled(NO)],
      'resolved disputed resolved settled',
    ],
    ['disputed before anybody looked', [disputed(YES)], 'resolved disputed'],
    ['corrected before the settlement', [[resolved(YES)], [resolved(NO)], settled(NO)], 'resolved corrected settled'],
    ['corrected with the settlement', [[resolved(YES)], settled(NO)], 'resolved corrected settled'],
    ['corrected after the settlement', [settled(YES), settled(NO), settled(NO)], 'resolved settled corrected'],
    ['settled and again called resolved', [settled(YES), [resolved(YES)], settled(YES)], 'resolved settled'],
    ['voided', [voided, voided], 'voided'],
    ['settled, then voided', [settled(YES), voided], 'resolved settled voided'],
    ['voided, then settled', [voided, [{ state: 'settled', payouts: YES }]], 'voided corrected'],
    ['taken back and resolved again', [[resolved(YES)], [], [], [resolved(YES)]], 'resolved reopened resolved'],
    ['proposed again after a result', [[resolved(YES)], [{ state: 'proposed' }]], 'resolved reopened proposed'],
    [
      'an unknown word, another one, then a result',
      [unknown('a'), unknown('a'), unknown('b'), [resolved(YES)]],
      'unknown unknown resolved',
    ],
    ['settled at once, and corrected', [[paid(YES)], [paid(NO)], [paid(NO)]], 'settled corrected'],
    ['settled by another result than was resolved', [[resolved(YES)], [paid(NO)]], 'resolved corrected settled'],
    ['settled by the result that was resolved', [[resolved(YES)], [paid(YES)]], 'resolved settled'],
    ['settled without payouts after a result', [[resolved(YES)], [{ state: 'settled' }]], 'resolved settled'],
    ['settled, and another result is called resolved', [[paid(YES)], [resolved(NO)]], 'settled corrected'],
    ['settled, and the same is called resolved without payouts', [[paid(YES)], [{ state: 'resolved' }]], 'settled'],
    ['voided, then resolved', [voided, [resolved(YES)]], 'voided corrected'],
    [
      'voided with payouts that change',
      [[{ state: 'voided', payouts: YES }], [{ state: 'voided', payouts: NO }]],
      'voided corrected',
    ],
    [
      'another result proposed, without rounds',
      [[{ state: 'proposed', payouts: YES }], [{ state: 'proposed', payouts: NO }]],
      'proposed proposed',
    ],
    [
      'a proposal whose payouts become known',
      [[{ state: 'proposed' }], [{ state: 'proposed', payouts: NO }]],
      'proposed',
    ],
    [
      'a proposal that is disputed and replaced',
      [[{ state: 'proposed' }], [{ state: 'disputed' }], [{ state: 'disputed' }], [{ state: 'proposed' }]],
      'proposed disputed proposed',
    ],
    ['an unknown word without a text', [[{ state: 'unknown' }], [{ state: 'unknown' }]], 'unknown'],
    ['empty payouts', [[resolved(YES)], [{ state: 'resolved', payouts: [] }]], 'resolved'],
    ['payouts stated later', [[{ state: 'resolved' }], [resolved(YES)], [{ state: 'resolved' }]], 'resolved corrected'],
  ])('has the right rows: %s', (_name, accounts, expected) => {
    expect(words(timelineOf(accounts))).toBe(expected);
  });

  it('stays settled when a settled result is corrected', () => {
    expect(timelineOf([settled(YES), settled(NO)]).at(-1)).toMatchObject({
      transition: 'corrected',
      state: 'settled',
      payouts: NO,
    });
  });

  const accounts = fc.array(
    fc.constantFrom(
      [],
      [resolved(YES)],
      [resolved(NO)],
      disputed(YES),
      disputed(NO),
      settled(YES),
      settled(NO),
      voided,
      unknown('a'),
    ),
    { minLength: 1, maxLength: 12 },
  );

  it('has no row when an account is repeated', () => {
    fc.assert(
      fc.property(accounts, (given) => {
        const rows = timelineOf(given);
        expect(resolutionChanges(standingAfter(rows), given.at(-1) ?? [])).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('ends in the state of the last account, and stays settled when a settled result is called resolved', () => {
    fc.assert(
      fc.property(accounts, (given) => {
        const last = given.at(-1)?.at(-1)?.state ?? 'none';
        const { state } = standingAfter(timelineOf(given));
        expect(last === 'resolved' ? ['resolved', 'settled'] : [last]).toContain(state);
      }),
      { numRuns: 500 },
    );
  });
});

describe('isDecided', () => {
  it.each<[string, string | null, boolean]>([
    ['settled', 'kalshi', true],
    ['resolved', 'kalshi', false],
    ['resolved', 'polymarket', true],
    ['resolved', null, true],
    ['closed', 'polymarket', false],
    ['open', null, false],
  ])('a market that is %s at %s: %s', (status, venue, expected) => {
    expect(isDecided(status, venue)).toBe(expected);
  });
});

describe('checkedPayouts', () => {
  const half = (share: string): OutcomePayout => ({ outcomeId: share, payout: decimal(share) });

  it.each<[string, Parameters<typeof checkedPayouts>[0], string | null]>([
    ['a winner', { payouts: YES }, null],
    [
      'a split to the last digit',
      { payouts: [half('0.333333333333333333333333333333'), half('0.666666666666666666666666666667')] },
      null,
    ],
    ['payouts beyond one', { payouts: [half('0.6'), half('0.5')] }, 'sum_not_one'],
    ['one of two outcomes', { payouts: [half('1')] }, 'incomplete'],
    ['nothing', {}, 'not_stated'],
    ['a refund', { reason: 'refund' }, 'refund'],
  ])('states the reason for %s', (_name, step, reason) => {
    const checked = checkedPayouts(step, 2);
    expect(checked).toEqual({ payouts: step.payouts ?? null, reason });
  });
});
