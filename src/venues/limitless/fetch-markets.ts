import { VenueError } from '../errors.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { isHttpStatus, type LimitlessClient } from './client.ts';
import { textOf } from './listed-rows.ts';
import type { MarketDirectory } from './market-directory.ts';
import { SLUG } from './outcome-ids.ts';

/** Requests in flight at once: as many as the venue's own clients send. */
const AT_ONCE = 2;

interface MarketPages {
  answers: { row: unknown; ageMs: number }[];
  /** Markets whose pages the venue cannot serve. */
  failed: RejectedRecord[];
}

/**
 * The pages of these markets, without unknown ones. A page that the venue cannot serve becomes a rejection, so that it does not delay the
 * others. Throws VenueError when the venue can serve no page at all.
 */
export async function readMarketPages(
  client: LimitlessClient,
  directory: MarketDirectory,
  slugs: readonly string[],
  signal: AbortSignal,
): Promise<MarketPages> {
  const pages: MarketPages = { answers: [], failed: [] };
  const waiting = [...slugs];
  let lastError: VenueError | undefined;
  const work = async () => {
    for (let slug = waiting.shift(); slug !== undefined; slug = waiting.shift()) {
      try {
        pages.answers.push(await readMarketPage(client, directory, slug, signal));
      } catch (error) {
        if (isHttpStatus(error, [404])) continue;
        if (!(error instanceof VenueError) || !isOfOnePage(error)) {
          waiting.length = 0;
          throw error;
        }
        lastError = error;
        const rejection = { reason: 'page_unavailable', detail: `${slug}: ${error.message}` };
        pages.failed.push(rejectRecord('markets', { slug }, rejection, slug));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (pages.answers.length === 0 && lastError !== undefined) throw lastError;
  return pages;
}

/** The page of an option names its group by the slug only. */
async function readMarketPage(
  client: LimitlessClient,
  directory: MarketDirectory,
  slug: string,
  signal: AbortSignal,
): Promise<{ row: unknown; ageMs: number }> {
  const { json: row, ageMs } = await client.getMarket(slug, signal);
  const groupSlug = textOf(row, 'groupSlug');
  if (groupSlug === undefined || !SLUG.test(groupSlug) || groupSlug === slug) return { row, ageMs };
  return { row: { ...(row as object), group: await directory.groupOf(groupSlug, signal) }, ageMs };
}

function isOfOnePage({ code }: VenueError): boolean {
  return ['http_status', 'invalid_payload', 'response_too_large'].includes(code);
}
