import { eventually } from '../../test/support/eventually.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { SOAK_VENUES } from './options.ts';
import type { Steady } from './steady.ts';

interface FedVenue {
  readonly venue: string;
  readonly feed?: { readonly state: string; readonly reason?: string; readonly gaps_24h: number };
}

const READ_EVERY_MS = 2_000;
const MAX_ALARMS = 100;
/** The first connections of four venues, beside the start of every process. */
const LIVE_WITHIN_MS = 120_000;

async function feedsOf(fleet: Fleet): Promise<FedVenue[]> {
  const isSoakVenue = ({ venue }: FedVenue) => (SOAK_VENUES as readonly string[]).includes(venue);
  return (await fleet.read<FedVenue[]>('/v1/venues')).filter(isSoakVenue);
}

/**
 * Resolves when every feed is live. From then on the exchange serves feeds without a fault: another state or another gap is a false alarm. The
 * first hundred are kept.
 */
export async function watchFeeds(fleet: Fleet, steady: Steady): Promise<readonly string[]> {
  const first = await eventually(
    () => feedsOf(fleet),
    (venues) => venues.length === SOAK_VENUES.length && venues.every(({ feed }) => feed?.state === 'live'),
    { timeoutMs: LIVE_WITHIN_MS, everyMs: 500 },
  );
  const gaps = new Map(first.map(({ venue, feed }) => [venue, feed?.gaps_24h ?? 0]));
  const alarms: string[] = [];
  steady.start('read feeds', READ_EVERY_MS, async () => {
    const at = new Date().toISOString();
    for (const { venue, feed } of await feedsOf(fleet)) {
      const before = gaps.get(venue) ?? 0;
      const now = feed?.gaps_24h ?? 0;
      gaps.set(venue, now);
      if (feed?.state !== 'live') alarms.push(`${at} ${venue}: ${feed?.state} ${feed?.reason ?? ''}`);
      if (now > before) alarms.push(`${at} ${venue}: ${now - before} gaps`);
    }
    alarms.splice(MAX_ALARMS);
  });
  return alarms;
}
