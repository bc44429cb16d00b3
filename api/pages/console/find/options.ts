import { chosen, textField } from '../../kit/filters.ts';
import { type Html, html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { Market } from '../answers.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { eventPath, marketPath, percent, plain, titleOf, venueTitle } from '../values.ts';
import {
  isNamesake,
  leadersFirst,
  type Question,
  type QuotedMarket,
  type QuotesOf,
  questionsOf,
  readQuotes,
} from './questions.ts';
import { MAX_WORDS } from './words.ts';

const PATH = '/console/find';
const MAX_QUESTIONS = 8;
/** Of one question. */
const MAX_MARKETS = 3;
/** Of one market. */
const MAX_OUTCOMES = 8;
/** The matches of one read. The markets of one event may fill it, so that further reads look for other questions. */
const READ_MARKETS = 50;
const MAX_READS = 3;

interface Found {
  questions: Question[];
  /** No market has the words, and these titles are similar. */
  isSimilar: boolean;
  /** The status of the markets: `open`, or `any` when no open market has the words. */
  status: 'open' | 'any';
}

/**
 * GET /console/find: the matches of `q` as options of a list box, grouped by question. An option of a question or a market has its page in
 * `data-href`. With `for=outcome` the options are outcomes, with their id, name and price in `data-token`, `data-name` and `data-price`.
 */
export function findOptions(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  router.part({
    path: PATH,
    scope: 'markets:read',
    async load(request) {
      const text = textField(request.query, 'q')?.slice(0, MAX_WORDS);
      const subject = chosen(request.query, 'for', ['market', 'outcome']) ?? 'market';
      if (text === undefined) return note('Enter words of a question.');
      const { questions, isSimilar, status } = await findQuestions(request, text);
      if (questions.length === 0) return note(`No market matches “${text}”.`);
      const quotesOf = await readQuotes(
        deps,
        questions.flatMap(({ markets }) => markets),
      );
      const show = subject === 'outcome' ? outcomeOptions : marketOptions;
      return html`${questions.map((question) => show(question, quotesOf))}${
        subject === 'market' && allMatches(text, status)
      }${isSimilar && note('No market contains these words. These titles are similar.')}${
        status === 'any' && !isSimilar && note('No open market matches. These markets have ended.')
      }`;
    },
  });
}

/** The best matches: the open markets, and all others only when no open market has the words. */
async function findQuestions(request: ConsoleRequest, text: string): Promise<Found> {
  const open = await readQuestions(request, text, 'open');
  if (open.questions.length > 0 && !open.isSimilar) return open;
  const any = await readQuestions(request, text, undefined);
  return any.questions.length > 0 && !any.isSimilar ? any : open.questions.length > 0 ? open : any;
}

async function readQuestions(
  { api }: Pick<ConsoleRequest, 'api'>,
  text: string,
  status: 'open' | undefined,
): Promise<Found> {
  const markets: Market[] = [];
  let isSimilar = false;
  let cursor: string | null | undefined;
  for (let reads = 0; reads < MAX_READS && cursor !== null; reads++) {
    const query = { q: text, status, limit: READ_MARKETS, cursor };
    const { data, meta } = await api<Market[]>({ operationId: 'listMarkets', params: { venue: 'all' }, query });
    markets.push(...data);
    isSimilar = meta['search'] === 'similar';
    cursor = meta.next_cursor ?? null;
    if (questionsOf(markets).length >= MAX_QUESTIONS) break;
  }
  return { questions: questionsOf(markets).slice(0, MAX_QUESTIONS), isSimilar, status: status ?? 'any' };
}

/** The leading markets of a question with their quotes. */
function leadersOf(question: Question, quotesOf: QuotesOf): QuotedMarket[] {
  return leadersFirst(question, quotesOf).slice(0, MAX_MARKETS);
}

function marketOptions(question: Question, quotesOf: QuotesOf): Html {
  const { venue, eventId, markets, title } = question;
  const [first] = markets;
  const where = html`<span class="where">${venueTitle(venue)}</span>`;
  const leaders = leadersOf(question, quotesOf);
  if (eventId === undefined) {
    return group(
      title,
      html`${option(marketPath(first), 'find-question', html`<span>${title}</span> ${where}`, quoteOf(leaders[0]))}`,
    );
  }
  return group(
    title,
    html`${option(eventPath(venue, eventId), 'find-question', html`<span>${title}</span> ${where}`)}${leaders.map(
      (leader) => option(marketPath(leader.market), 'find-member', html`${memberName(leader.market)}`, quoteOf(leader)),
    )}${more(question)}`,
  );
}

/** The price of the first outcome or the leader, whose name it has where the title does not say it. */
function quoteOf(leader: QuotedMarket | undefined): Html | undefined {
  const [quote] = leader?.quotes ?? [];
  if (leader === undefined || quote === undefined) return undefined;
  const name =
    isNamesake(quote.label, leader.market.sibling_label, leader.market.outcomes.length) &&
    leader.market.event_id !== undefined
      ? ''
      : `${quote.label} `;
  return html`<span class="find-quote">${name}<span class="num">${percent(quote.price) ?? '–'}</span></span>`;
}

function outcomeOptions(question: Question, quotesOf: QuotesOf): Html {
  const isEvent = question.eventId !== undefined;
  return group(
    question.title,
    html`<li role="presentation" class="find-question"><span>${question.title} <span class="where">${venueTitle(question.venue)}</span></span></li>${leadersOf(
      question,
      quotesOf,
    ).map(({ market, quotes }) =>
      quotes.slice(0, MAX_OUTCOMES).map(({ outcomeId, label, price }) => {
        const name = `${label} of ${titleOf(market)}`;
        const member = isEvent && memberName(market) !== question.title ? `${memberName(market)} · ` : '';
        return html`<li role="option" class="find-member" aria-selected="false" data-token="${outcomeId}" data-name="${name}" data-price="${
          price === null ? '' : plain(price)
        }">${member}${label}<span class="visually-hidden"> · </span> <span class="num">${percent(price) ?? 'no price'}</span></li>`;
      }),
    )}${more(question)}`,
  );
}

function more({ markets }: Question): Html | undefined {
  const count = markets.length - MAX_MARKETS;
  if (count <= 0) return undefined;
  return html`<li role="presentation" class="find-more">${count} more ${count === 1 ? 'market matches' : 'markets match'}</li>`;
}

function allMatches(text: string, status: Found['status']): Html {
  const query = new URLSearchParams({ q: text, ...(status === 'any' && { status }) });
  return group('All matches', option(`/markets?${query.toString()}`, 'find-all', html`All matches for “${text}”`));
}

function group(label: string, options: Html): Html {
  return html`<ul role="group" aria-label="${label}">${options}</ul>`;
}

function option(href: string, kind: string, name: Html, quote?: Html): Html {
  return html`<li role="option" class="${kind}" aria-selected="false" data-href="${href}"><span class="find-name">${name}</span>${quote}</li>`;
}

function note(text: string): Html {
  return html`<p data-note>${text}</p>`;
}

/** The name of a market among others of its question. */
function memberName({ sibling_label: label, title }: Pick<Market, 'sibling_label' | 'title'>): string {
  return label ?? title;
}
