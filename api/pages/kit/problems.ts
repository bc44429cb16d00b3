import { ago, clock, type Html, type HtmlValue, html, type Tone } from './html.ts';

/** Something that an operator should look at. Each page shows its fields in this order. */
export interface Problem {
  sentence: HtmlValue;
  /** Its begin; null when the time is unknown. */
  since: Date | null;
  /** The work, the data and the people that suffer. */
  affects: HtmlValue;
  /** The next step of the operator. */
  action: HtmlValue;
  /** The page about it: a path. */
  link: string;
  /** A problem that others may be an effect of. It stands before them, and they below it. */
  isCause?: true;
  /** The effects of a cause. */
  effects?: readonly Problem[];
  /** `bad` by default; `warn` when the service works on without loss. */
  tone?: Extract<Tone, 'bad' | 'warn'>;
}

interface Shown {
  nowMs: number;
  /** The moment of the facts. */
  checkedAt: Date;
  /** The sentence without a problem. */
  well: string;
}

/** The head of a page of the operators: all is well, with the time until which that holds, or each problem. */
export function problemsOf(problems: readonly Problem[], { nowMs, checkedAt, well }: Shown): Html {
  const all = problems.flatMap((problem) => [problem, ...(problem.effects ?? [])]);
  if (all.length === 0) {
    return html`<p class="verdict good">${well} <span class="since">This holds until ${clock(checkedAt, nowMs)} UTC.</span></p>`;
  }
  const tone = all.some((each) => each.tone !== 'warn') ? 'bad' : 'warn';
  const oldest = all.reduce<Date | null>(
    (since, each) => (each.since !== null && (since === null || each.since < since) ? each.since : since),
    null,
  );
  const count =
    problems.length > 1 &&
    html`<p>${problems.length} problems${oldest !== null && html`, the oldest since ${moment(oldest, nowMs)}`}.</p>`;
  return html`<div class="verdict ${tone}">${count}${problems.map((problem) => problemView(problem, nowMs))}</div>`;
}

function problemView(problem: Problem, nowMs: number): Html {
  const { sentence, since, affects, action, link, effects = [], tone = 'bad' } = problem;
  return html`<article class="trouble ${tone}"><p class="what">${sentence}</p>
<dl><div><dt>Since</dt><dd class="since">${since === null ? 'unknown' : moment(since, nowMs)}</dd></div>
<div><dt>Affects</dt><dd>${affects}${effects.length > 0 && html` ${effects.length === 1 ? 'Another problem may be its effect' : `${effects.length} other problems may be its effects`}, below.`}</dd></div>
<div><dt>Do</dt><dd>${action} <a href="${link}">Details</a></dd></div></dl>
${effects.length > 0 && html`<ul>${effects.map((effect) => html`<li class="${effect.tone ?? 'bad'}">${effect.sentence}${effect.since !== null && html` <span class="since">Since ${moment(effect.since, nowMs)}.</span>`} <a href="${effect.link}">Details</a></li>`)}</ul>`}</article>`;
}

/** The time of day, with the date of another day, and the distance. */
function moment(at: Date, nowMs: number): Html {
  return html`${clock(at, nowMs)} UTC (${ago(at, nowMs)})`;
}
