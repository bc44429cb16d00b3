import { beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { CoveredVenue } from './coverage-harness.ts';

const EMPTY = sql(
  'test_empty_coverage',
  `TRUNCATE market, poll_state, volume_sample, venue_completeness, mark, candle, coverage, coverage_total, coverage_poll, coverage_sweep,
     coverage_settled CASCADE`,
);
const test = useTestDatabase();
let made = 0;
beforeEach(async () => {
  await test.db.query(EMPTY);
  made += 1;
});

const STEP_MS = 60_000;

/** Moves the clock by minutes, with `onMinute` and a run after each. */
async function pass(
  venue: CoveredVenue,
  minutes: number,
  onMinute: (minute: number) => Promise<unknown> = async () => undefined,
) {
  for (let minute = 0; minute < minutes; minute += 1) {
    venue.nowMs += STEP_MS;
    await onMinute(minute);
    await venue.tick();
  }
}

/** Lets every total of the last hour settle. */
const settle = (venue: CoveredVenue) => pass(venue, 20);

describe('coverage of trades', () => {
  it('is complete, quiet and a gap when trades are stored, absent and lost', async () => {
    const [market, other] = [`m${made}`, `o${made}`];
    const venue = new CoveredVenue(test, 'kalshi', [market, other]);
    await venue.begin();
    await pass(venue, 30);
    await pass(venue, 60, (minute) => (minute % 10 === 5 ? venue.trade(market, 20) : Promise.resolve()));
    await pass(venue, 60, (minute) => (minute === 30 ? venue.trade(market, 50, { isLost: true }) : Promise.resolve()));
    await pass(venue, 60);
    await settle(venue);
    const hours = await venue.hoursOf(market);
    expect(hours.map((hour) => hour.class)).toEqual(['complete', 'gap', 'quiet']);
    expect(hours[0]).toMatchObject({ stored: '120', total: '120' });
    expect(hours[1]).toMatchObject({ cause: 'missing_trades', missing: '50', stored: '0' });
    expect((await venue.hoursOf(other)).map((hour) => hour.class)).toEqual(['quiet', 'quiet', 'quiet']);
    const summed = await venue.venueHours();
    expect(summed.map((hour) => hour.class)).toEqual(['complete', 'gap', 'quiet']);
    expect(summed[1]).toMatchObject({ marketsGap: 1, missing: '50' });
  });
});
