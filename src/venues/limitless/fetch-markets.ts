import { boundedCache } from '../../domain/values/caches.ts';
import { isHttpStatus } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import type { Asked } from '../http/member-batches.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { AT_ONCE, type LimitlessClient } from './client.ts';
import { factsOf, listingSizeAt, textOf } from './listing.ts';
import { limitlessPrices } from './models.ts';
import { type OutcomeIds, outcomeIdsOf, SLUG } from './outcome-ids.ts';
import { tradeTypeOf } from './parse-market.ts';
import { reasonToStop } from './walk-markets.ts';

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

const MAX_OUTCOMES = 100_000;
const MAX_GROUPS = 20_000;
/** A token that no listing names is looked for this often at most. */
const WALK_EVERY_MS = 60_000;

/** The place of an outcome's book. */
interface Place {
  slug: string;
  outcomeIds: OutcomeIds;
}

/** Facts of the listings that the process has read, because the venue finds a book by the slug of its market only. */
interface MarketDirectory {
  /** Takes the facts of a page of the listing. */
  learn(rows: readonly unknown[]): void;
  /** The markets with books behind these outcomes; walks the listing for unknown ones. Throws VenueError. */
  placesOf(outcomeIds: readonly string[], context: { signal: AbortSignal; now(): number }): Promise<Place[]>;
  /** The facts of a group, which the pages of its options only name. Throws VenueError. */
  groupOf(slug: string, signal: AbortSignal, batch?: BatchRequest): Promise<object>;
}

export function createMarketDirectory(
  client: Pick<LimitlessClient, 'listMarkets' | 'getMarket'>,
  pageSize: number,
): MarketDirectory {
  const places = boundedCache<Place>(MAX_OUTCOMES);
  const groups = boundedCache<object>(MAX_GROUPS);
  let walkedAtMs = Number.NEGATIVE_INFINITY;

  function learn(rows: readonly unknown[]): void {
    for (const row of rows) {
      const parsed = limitlessPrices.safeParse(row);
      if (!parsed.success) continue;
      const { slug, tokens, group } = parsed.data;
      if (group?.slug) groups.set(group.slug, (row as { group: object }).group);
      if (!tokens || tradeTypeOf(parsed.data) !== 'clob') continue;
      const outcomeIds = outcomeIdsOf(slug, tokens);
      for (const outcomeId of outcomeIds) places.set(outcomeId, { slug, outcomeIds });
    }
  }

  async function walk(wanted: readonly string[], nowMs: number, signal: AbortSignal): Promise<void> {
    const limit = listingSizeAt(pageSize, nowMs);
    for (let page = 1; wanted.some((id) => !places.has(id)); page += 1) {
      const answer = await client.listMarkets({ page, limit }, signal);
      if (answer.isEmpty || reasonToStop({ page }, answer) !== undefined) break;
      learn(answer.rows);
    }
    walkedAtMs = nowMs;
  }

  return {
    learn,
    async placesOf(outcomeIds, { signal, now }) {
      const sinceWalkMs = now() - walkedAtMs;
      const isDue = sinceWalkMs < 0 || sinceWalkMs >= WALK_EVERY_MS;
      if (isDue && outcomeIds.some((id) => !places.has(id))) await walk(outcomeIds, now(), signal);
      const found = new Map(outcomeIds.flatMap((id) => places.get(id) ?? []).map((place) => [place.slug, place]));
      return [...found.values()];
    },
    async groupOf(slug, signal, batch) {
      const known = groups.get(slug);
      if (known !== undefined) return known;
      const facts = await client.getMarket(slug, signal, batch).then(
        ({ json }) => factsOf(json),
        (error: unknown) => {
          if (isHttpStatus(error, [404])) return {};
          throw error;
        },
      );
      groups.set(slug, facts);
      return facts;
    },
  };
}
