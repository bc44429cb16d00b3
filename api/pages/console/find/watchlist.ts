import { html } from '../../kit/html.ts';
import { pager } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { Market } from '../answers.ts';
import { marketTable, trendsOf } from '../markets.ts';
import { programExamples } from '../program.ts';
import type { ConsoleRouter } from '../route.ts';
import { readStars } from './star.ts';

/** A stream follows 100 markets. */
const PAGE_MARKETS = 100;

/** /watchlist: the watched markets of the account with live prices. */
export function watchlistPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  router.page({
    path: '/watchlist',
    section: 'watchlist',
    scope: 'markets:read',
    async load(request) {
      const call = {
        operationId: 'listWatchlist',
        query: { limit: PAGE_MARKETS, cursor: request.query.get('cursor') ?? undefined },
      };
      const { data: markets, meta, text } = await request.api<Market[]>(call);
      const [trends, starOf] = await Promise.all([
        trendsOf(deps, markets, request.nowMs),
        readStars(deps, request, markets),
      ]);
      const empty = html`Your watchlist is empty. <a href="/markets">Open the markets</a> and press the star of one.`;
      const body = html`<p class="lead">The markets with a star, the newest first. All keys of the account share this list.</p>
<div id="results" data-venues="${[...new Set(markets.map(({ venue }) => venue))].join(',')}" data-markets="${markets.map(({ market_id }) => market_id).join(',')}">
<div class="state-line"><p class="muted"></p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC</p></div>
${marketTable(markets, trends, { starOf, names: 'titles', empty })}
${pager(request, meta.next_cursor ?? null, { first: 'Newest', next: 'Older' })}
</div>
${programExamples(request, {
  calls: [['the watchlist', call]],
  typescript: `for await (const market of client.watchlist.iterate()) {
  console.log(market.title);
}`,
  python: `for market in client.watchlist.iterate():
    print(market.title)`,
  json: text,
})}`;
      return { title: 'Watchlist', body, scripts: ['markets.js'] };
    },
  });
}
