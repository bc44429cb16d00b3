import { watchedAmong } from '../../../../src/store/accounts/watchlist.ts';
import { ApiError } from '../../../errors.ts';
import { textField } from '../../kit/filters.ts';
import { hidden } from '../../kit/forms.ts';
import { type Html, html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { csrfField } from '../../kit/session.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { nextPath } from '../values.ts';

const PATH = '/watchlist/star';
/** Longer filters are not kept, in characters. */
const MAX_BACK = 500;

/** A market with a star. */
interface Starred {
  venue: string;
  market_id: string;
  /** Names it for screen readers, and in the list of recently seen markets. */
  name: string;
}

/** The star of a market of a page. */
export type StarOf = (market: Starred, options?: { isPage?: boolean }) => Html;

/** POST /watchlist/star: puts a market on the watchlist, or takes it away. */
export function starAction(router: ConsoleRouter): void {
  router.action({
    path: PATH,
    section: 'watchlist',
    scope: 'markets:read',
    async run({ form, api }) {
      const params = { venue: textField(form, 'venue') ?? '', market_id: textField(form, 'market_id') ?? '' };
      if (form.get('watched') === '1') await api({ operationId: 'watchMarket', params });
      else {
        await api({ operationId: 'unwatchMarket', params }).catch((error: unknown) => {
          // Another tab took it away.
          if (!(error instanceof ApiError && error.code === 'not_found')) throw error;
        });
      }
      return { to: nextPath(form.get('back')) ?? '/watchlist' };
    },
  });
}

/**
 * The stars of these markets: forms that put a market on the watchlist or take it away, also without scripts. `isPage` marks the market that
 * the page is about.
 */
export async function readStars(
  { db }: Pick<PageDeps, 'db'>,
  { session, path, query }: Pick<ConsoleRequest, 'session' | 'path' | 'query'>,
  markets: readonly { venue: string; market_id: string }[],
): Promise<StarOf> {
  const asked = markets.map(({ venue, market_id: marketId }) => ({ venue, marketId }));
  const found = asked.length === 0 ? [] : await watchedAmong(db, session.caller.accountId, asked);
  const watched = new Set(found.map(({ venue, marketId }) => `${venue} ${marketId}`));
  const search = query.toString();
  // Each of many stars repeats it.
  const back = search === '' || search.length > MAX_BACK ? path : `${path}?${search}`;
  return ({ venue, market_id, name }, { isPage = false } = {}) => {
    const isWatched = watched.has(`${venue} ${market_id}`);
    const fields = { venue, market_id, back };
    return html`<form method="post" action="${PATH}" class="star" data-star${isPage && html` data-seen="${name}"`}>${csrfField(
      session.csrf,
    )}${hidden(fields)}<button type="submit" name="watched" value="${isWatched ? '0' : '1'}" aria-pressed="${String(isWatched)}"><span aria-hidden="true"></span><span class="visually-hidden">Watch ${name}</span></button></form>`;
  };
}
