import { isHttpStatus } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import type { Asked } from '../http/member-batches.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { AT_ONCE, type LimitlessClient } from './client.ts';
import { textOf } from './listed-rows.ts';
import type { MarketDirectory } from './market-directory.ts';
import { SLUG } from './outcome-ids.ts';

interface MarketPages extends Pick<Asked<unknown>, 'unread' | 'fault'> {
  answers: { row: unknown; ageMs: number }[];
  /** Markets whose pages the venue cannot serve. */
  failed: RejectedRecord[];
}

type ReadMarketPages = (slugs: readonly string[], signal: AbortSignal) => Promise<MarketPages>;

/**
 * The pages of markets, without unknown ones. A page that the venue cannot serve becomes a rejection, so that it does not delay the others.
 * Throws VenueError when the venue can serve no page at all.
 */
export function createMarketPages(
  client: Pick<LimitlessClient, 'getMarket' | 'members'>,
  directory: Pick<MarketDirectory, 'groupOf'>,
): ReadMarketPages {
  const pages = client.members('market');

  /** The page of an option names its group by the slug only. */
  async function readMarketPage(slug: string, signal: AbortSignal, request: BatchRequest) {
    const { json: row, cachedMs: ageMs } = await client.getMarket(slug, signal, request);
    const groupSlug = textOf(row, 'groupSlug');
    if (groupSlug === undefined || !SLUG.test(groupSlug) || groupSlug === slug) return { row, ageMs };
    return { row: { ...(row as object), group: await directory.groupOf(groupSlug, signal, request) }, ageMs };
  }

  return async (slugs, signal) => {
    const { answers, refused, ...rest } = await pages.ask(
      slugs,
      async ([slug = ''], request) => {
        try {
          return await readMarketPage(slug, signal, request);
        } catch (error) {
          if (isHttpStatus(error, [404])) return undefined;
          throw error;
        }
      },
      { size: 1, atOnce: AT_ONCE },
    );
    return {
      answers: answers.flatMap(({ answer }) => answer ?? []),
      failed: refused.map(({ member: slug, reason }) =>
        rejectRecord('markets', { slug }, { reason: 'page_unavailable', detail: `${slug}: ${reason}` }, slug),
      ),
      ...rest,
    };
  };
}
