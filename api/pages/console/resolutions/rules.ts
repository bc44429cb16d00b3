import { isWebAddress } from '../../../../src/domain/values/parse-url.ts';
import type { MarketRulesBody } from '../../../contract/rules.ts';
import { textField } from '../../kit/filters.ts';
import { type Html, html } from '../../kit/html.ts';
import { withQuery } from '../../kit/lists.ts';
import { type Market, orNothing } from '../answers.ts';
import type { ApiCall } from '../api-calls.ts';
import type { ConsoleRequest } from '../route.ts';
import { fromSeconds, minute } from '../values.ts';

/** The version with which the address compares the present rules. */
const VERSION = 'rules';
/** A hash names a version; its start is enough for a reader. */
const HASH_DIGITS = 12;

type Rules = MarketRulesBody;

/** Reads the rules of a market, and their difference from the version in the address. Undefined before they were read. */
export async function readRules(
  { api, query }: Pick<ConsoleRequest, 'api' | 'query'>,
  { venue, market_id }: Market,
): Promise<Rules | undefined> {
  const call = (compared = {}): ApiCall => ({
    operationId: 'getMarketRules',
    params: { venue, market_id },
    query: compared,
  });
  const present = (await orNothing(api<Rules>(call())))?.data;
  const from = Number(textField(query, VERSION));
  const isFormer = present?.versions.some(({ version }) => version === from && version !== present.version) ?? false;
  if (present === undefined || !isFormer) return present;
  return (await orNothing(api<Rules>(call({ from, to: present.version }))))?.data ?? present;
}

/** The section of a market page about its rules: the text, where it comes from, and the former versions. */
export function rulesSection(
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  market: Market,
  rules: Rules | undefined,
): Html {
  const { description, resolution_criteria: criteria = '' } = market;
  const text = rules?.text ?? criteria;
  const isDescribed = description !== '' && description.trim() !== text.trim();
  return html`<section aria-labelledby="rules-title" id="rules"><h2 id="rules-title">Rules</h2>
${rules === undefined && text !== '' && html`<p class="muted">oddswire has not read the rules as such yet. This is the text in the venue’s list of markets.</p>`}
${text === '' && !isDescribed && html`<p class="empty">${rules === undefined ? 'The rules of this market are not known.' : 'The venue states no rules.'}</p>`}
${rules?.diff === undefined ? text !== '' && html`<p class="long prose">${text}</p>` : diffText(request, rules)}
${rules && origin(rules)}
${rules && rules.versions.length > 1 && versionList(request, rules)}
${isDescribed && html`<details class="more"><summary>Description of the venue</summary><p class="long prose">${description}</p></details>`}</section>`;
}

function origin({ settlement_source: source, read_at, since, version }: Rules): Html {
  return html`<p class="muted">${
    source === undefined
      ? 'The venue states no source of the result'
      : html`Source of the result: ${isWebAddress(source) ? html`<a href="${source}" rel="noreferrer noopener">${source}</a>` : source}`
  } · version ${version}, stored since ${minute(fromSeconds(since))} UTC${
    read_at !== undefined && html` · read last at ${minute(fromSeconds(read_at))} UTC or later`
  }</p>`;
}

/** The former texts are the words without the insertions. */
function diffText(
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  { diff = [], version, settlement_source_diff: source }: Rules,
): Html {
  const from = request.query.get(VERSION);
  const parts = (all: NonNullable<Rules['diff']>) =>
    all.map(({ op, text }) =>
      op === 'equal' ? text : op === 'insert' ? html`<ins>${text}</ins>` : html`<del>${text}</del>`,
    );
  return html`<p>Changes from version ${from} to version ${version}. <a href="${withQuery(request, { [VERSION]: undefined })}#rules">Show the present text</a></p>
<p class="long prose">${parts(diff)}</p>
${source !== undefined && html`<p class="long">Source of the result: ${parts(source)}</p>`}`;
}

function versionList(request: Pick<ConsoleRequest, 'path' | 'query'>, { versions, version: present }: Rules): Html {
  return html`<ul class="versions">${versions
    .toReversed()
    .map(
      ({ version, since, hash }) =>
        html`<li>Version ${version} since ${minute(fromSeconds(since))} UTC, <code title="${hash}">${hash.slice(0, HASH_DIGITS)}</code>${
          version === present
            ? ' (present)'
            : html` · <a href="${withQuery(request, { [VERSION]: String(version) })}#rules">what changed since then</a>`
        }</li>`,
    )}</ul>`;
}
