import { MARKET_STATUSES } from '../../../../src/domain/markets/market.ts';
import { VENUES } from '../../../../src/domain/markets/venue.ts';
import { type ListedQuestion, listQuestions, QUESTION_SORTS } from '../../../../src/store/series/market-questions.ts';
import { listCategories } from '../../../../src/store/series/market-trends.ts';
import { marketVenues } from '../../../routes/market-scope.ts';
import { chosen, textField } from '../../kit/filters.ts';
import { choice, hidden } from '../../kit/forms.ts';
import { type Html, html } from '../../kit/html.ts';
import { pager, withQuery } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { MAX_CATEGORIES, trendsOf } from '../markets.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { venueTitle } from '../values.ts';
import { questionTable, SHOWN_LEADERS } from './question-table.ts';
import { readStars } from './star.ts';
import { findByWords, MAX_WORDS } from './words.ts';

const PATH = '/markets';
/** A stream follows 100 markets: the leaders of all rows, and the markets of an open row. */
const PAGE_QUESTIONS = 30;
const SORT_LABELS: Readonly<Record<(typeof QUESTION_SORTS)[number], string>> = {
  volume_24h: 'Volume, 24 h',
  move: 'Move, 24 h',
  close_at: 'Closes first',
  created: 'Newest',
};
const MONEY = ['real', 'play', 'all'] as const;
type Money = (typeof MONEY)[number];
const MONEY_LABELS: Readonly<Record<Money, string>> = {
  real: 'Real money',
  play: 'Play money',
  all: 'All, real first',
};

interface Filters {
  text: string | undefined;
  venue: string | undefined;
  category: string | undefined;
  /** `any` shows every status. */
  status: string;
  money: Money;
  sort: (typeof QUESTION_SORTS)[number];
}

/** Questions whose volumes compare, under a heading when there are several. */
interface Section {
  heading: string | undefined;
  questions: ListedQuestion[];
}

interface Found {
  sections: Section[];
  next: string | null;
  isSimilar: boolean;
}

/** Venues of one kind of money. */
interface VenueGroup {
  heading: string;
  venues: string[];
}

type ListDeps = Pick<PageDeps, 'db' | 'cursors' | 'venues'>;

/** /markets: questions with their leaders, by filters in an order, or by words. */
export function marketsPage(router: ConsoleRouter, deps: ListDeps): void {
  const venues = marketVenues(deps);
  router.page({
    path: PATH,
    section: 'markets',
    scope: 'markets:read',
    async load(request) {
      const filters = readFilters(request.query, venues);
      const [found, categories] = await Promise.all([
        findQuestions(request, deps, filters, venues),
        listCategories(deps.db, MAX_CATEGORIES),
      ]);
      return {
        title: 'Markets',
        scripts: ['markets.js'],
        body: html`${filterForm(filters, venues, categories)}
<nav class="recent" data-recent aria-label="Recently seen"></nav>
${await results(request, deps, filters, found)}`,
      };
    },
  });
}

async function results(
  request: ConsoleRequest,
  deps: ListDeps,
  filters: Filters,
  { sections, next, isSimilar }: Found,
): Promise<Html> {
  const { text } = filters;
  const questions = sections.flatMap((section) => section.questions);
  const leads = questions.flatMap(({ markets: [lead] }) => lead ?? []);
  const markets = questions.flatMap(({ markets: listed }) => listed);
  const named = ({ venue, marketId: market_id }: { venue: string; marketId: string }) => ({ venue, market_id });
  const [trends, starOf] = await Promise.all([
    trendsOf(
      deps,
      leads.map((lead) => ({ ...named(lead), outcome_id: lead.outcomeId ?? undefined })),
      request.nowMs,
    ),
    readStars(deps, request, markets.map(named)),
  ]);
  const shown = questions.flatMap(({ markets: listed }) => listed.slice(0, SHOWN_LEADERS));
  const empty = html`No market matches. <a href="${PATH}">Remove the filters</a> or search for other words.`;
  const parts = { trends, starOf, empty };
  return html`<div id="results" data-venues="${[...new Set(shown.map(({ venue }) => venue))].join(',')}" data-markets="${[...new Set(shown.map(({ marketId }) => marketId))].join(',')}">
${
  text !== undefined &&
  html`<p class="matches-of">Matches for <strong>“${text}”</strong> <a href="${withQuery(request, { q: undefined })}">Show all markets</a></p>`
}
<div class="state-line"><p class="muted">${summary(filters, questions.length, isSimilar)}</p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC</p></div>
<p class="hint" data-still hidden></p>
${text !== undefined && request.query.has('sort') && html`<p class="hint">A search by words has its own order: the best match first.</p>`}
${
  questions.length === 0
    ? questionTable([], { ...parts, caption: 'Markets' })
    : sections.map(
        ({ heading, questions: rows }) =>
          rows.length > 0 &&
          html`${heading !== undefined && html`<h2>${heading}</h2>`}${questionTable(rows, { ...parts, caption: heading ?? 'Markets' })}`,
      )
}
${pager(request, next)}
</div>`;
}

function readFilters(query: URLSearchParams, venues: readonly string[]): Filters {
  const text = textField(query, 'q')?.slice(0, MAX_WORDS);
  const venue = chosen(query, 'venue', venues);
  return {
    text,
    venue,
    category: textField(query, 'category')?.slice(0, 200),
    status: chosen(query, 'status', ['any', ...MARKET_STATUSES]) ?? 'open',
    money: chosen(query, 'money', MONEY) ?? defaultMoney(text, venues),
    sort: chosen(query, 'sort', QUESTION_SORTS) ?? 'volume_24h',
  };
}

/** A search by words compares no volumes. */
function defaultMoney(text: string | undefined, venues: readonly string[]): Money {
  if (text !== undefined) return 'all';
  return venues.every(isPlay) ? 'play' : 'real';
}

function isPlay(venue: string): boolean {
  return VENUES[venue as keyof typeof VENUES].currency === 'MANA';
}

/** The venues of a list. A chosen venue overrides the filter by money. */
function groupsOf({ venue, money }: Filters, venues: readonly string[]): VenueGroup[] {
  const wanted = venue === undefined ? venues : [venue];
  const has = (kind: Money) => venue !== undefined || money === 'all' || money === kind;
  const groups = [
    { heading: 'Real money', venues: has('real') ? wanted.filter((each) => !isPlay(each)) : [] },
    { heading: 'Play money', venues: has('play') ? wanted.filter(isPlay) : [] },
  ];
  return groups.filter((group) => group.venues.length > 0);
}

/** The questions of each group in the order of the list: first real money, then play money. */
async function findQuestions(
  { query, nowMs }: ConsoleRequest,
  deps: ListDeps,
  filters: Filters,
  venues: readonly string[],
): Promise<Found> {
  const { text, category, status, sort } = filters;
  const groups = groupsOf(filters, venues);
  const statuses = MARKET_STATUSES.filter((each) => status === 'any' || each === status);
  const given = query.get('cursor');
  const of = groups.map((group) => group.venues);
  const scope = JSON.stringify(['console questions', of, statuses, category, text ?? sort]);
  const cursor = given === null ? undefined : deps.cursors.decode(scope, given);
  const encode = (place: readonly string[] | undefined) =>
    place === undefined ? null : deps.cursors.encode(scope, place);
  const common = { statuses, ...(category !== undefined && { category }) };
  if (text !== undefined) {
    const page = await findByWords(deps, { ...common, venues: of.flat(), text }, cursor);
    return {
      sections: [{ heading: undefined, questions: page.questions }],
      next: encode(page.next),
      isSimilar: page.isSimilar,
    };
  }
  const [first = '0', ...position] = cursor ?? [];
  const sections: Section[] = [];
  let missing = PAGE_QUESTIONS;
  let after: readonly string[] | undefined = position.length > 0 ? position : undefined;
  for (const [at, { heading, venues: ofGroup }] of [...groups.entries()].slice(Number(first))) {
    // A full page looks for one row of the next group, which begins the next page.
    const limit = Math.max(1, missing);
    const page = await listQuestions(
      deps.db,
      { ...common, venues: ofGroup, sort, limit, ...(after && { after }) },
      nowMs,
    );
    if (missing === 0) {
      if (page.questions.length > 0) return { sections, next: encode([String(at)]), isSimilar: false };
      continue;
    }
    sections.push({ heading: groups.length > 1 ? heading : undefined, questions: page.questions });
    if (page.next) return { sections, next: encode([String(at), ...page.next]), isSimilar: false };
    missing -= page.questions.length;
    after = undefined;
  }
  return { sections, next: null, isSimilar: false };
}

function filterForm(
  { text, venue, category, status, money, sort }: Filters,
  venues: readonly string[],
  categories: readonly string[],
): Html {
  const any = ['', 'All'] as const;
  const defaults = { status: 'open', sort: 'volume_24h', money: defaultMoney(undefined, venues) };
  return html`<form method="get" action="${PATH}" class="filters market-filters" data-instant data-defaults="${JSON.stringify(defaults)}">
${hidden({ q: text ?? '' })}
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: [any, ...venues.map((each) => [each, venueTitle(each)] as const)] })}
${choice({
  label: 'Category',
  name: 'category',
  value: category ?? '',
  options: [
    any,
    ...[...new Set([...categories, ...(category === undefined ? [] : [category])])].map(
      (each) => [each, each] as const,
    ),
  ],
})}
${choice({
  label: 'Status',
  name: 'status',
  value: status,
  options: [...MARKET_STATUSES, 'any'].map((each) => [each, each] as const),
})}
${choice({ label: 'Money', name: 'money', value: money, options: MONEY.map((each) => [each, MONEY_LABELS[each]] as const) })}
${choice({ label: 'Order', name: 'sort', value: sort, options: QUESTION_SORTS.map((each) => [each, SORT_LABELS[each]] as const) })}
<div class="submit"><button type="submit">Show</button><a class="quiet" href="${PATH}">Reset</a></div></form>`;
}

function summary({ text, sort, venue, money }: Filters, count: number, isSimilar: boolean): string {
  if (text !== undefined && isSimilar) {
    return `No market contains these words. ${count} ${count === 1 ? 'title is' : 'titles are'} similar.`;
  }
  if (text !== undefined) return count === 1 ? '1 question' : `${count} questions`;
  const kind = venue !== undefined && isPlay(venue) ? 'play' : 'real';
  const words = [
    sort === 'move' ? 'The largest moves of the 500 most traded markets.' : '',
    venue !== undefined && money !== 'all' && money !== kind
      ? `${venueTitle(venue)} uses ${kind === 'play' ? 'play money (mana)' : 'real money'}.`
      : '',
  ];
  return words.filter(Boolean).join(' ');
}
