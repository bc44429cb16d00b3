import { z } from 'zod';
import { type Decimal, ONE, parseDecimal, subtractDecimals } from '../../../domain/values/decimal.ts';
import type { FeedLoss, FeedMarket, FeedReading, FeedSession } from '../../feeds/port.ts';
import { emptyReading, isObject, parseFrame, quarantine, sawVenueTime, skip } from '../../feeds/reading.ts';
import { isUnitPrice } from '../../quantity.ts';
import { readModel } from '../../rejection.ts';
import { outcomeIdOf, VENUE_ID } from '../outcome-ids.ts';
import { betTimeMs, parseBets } from '../parse-trade.ts';

/** Topics of one message. */
const TOPICS_PER_MESSAGE = 100;
const NEW_BET = 'global/new-bet';
const UPDATED_CONTRACT = 'global/updated-contract';
const NEW_CONTRACT = 'global/new-contract';
const UPDATED_ANSWERS = /^contract\/([\w-]{1,64})\/updated-answers$/;
/** Changed fields that decide the state of a market. */
const STATE_FIELDS = ['isResolved', 'resolution', 'resolutionTime', 'closeTime', 'question'];

interface Market {
  readonly outcomeIds: ReadonlySet<string>;
  readonly isBinary: boolean;
}

export function createManifoldSession(): FeedSession {
  return new ManifoldSession();
}

/**
 * Bets, contracts and answers of the whole venue, without books, sequence numbers or replay. It follows the documentation only: a topic
 * with a typing error is acknowledged and stays silent.
 */
class ManifoldSession implements FeedSession {
  readonly #markets = new Map<string, Market>();
  readonly #quotes = new Map<string, { price: Decimal; asOfMs: number; atMs: number }>();
  #nextTxid = 1;

  open(): string[] {
    return this.#topics('subscribe', [NEW_BET, UPDATED_CONTRACT, NEW_CONTRACT]);
  }

  ping(): string {
    return this.#command('ping', {});
  }

  /** Global topics carry the prices of binary markets. The answers of other markets have topics of their own. */
  subscribe(markets: readonly FeedMarket[]): string[] {
    const added: string[] = [];
    for (const { marketId, outcomeIds } of markets) {
      if (this.#markets.has(marketId)) continue;
      const isBinary = outcomeIds.includes(outcomeIdOf(marketId, 'YES'));
      this.#markets.set(marketId, { outcomeIds: new Set(outcomeIds), isBinary });
      if (!isBinary) added.push(answersTopic(marketId));
    }
    return this.#topics('subscribe', added);
  }

  unsubscribe(marketIds: readonly string[]): string[] {
    const removed: string[] = [];
    for (const marketId of marketIds) {
      const market = this.#markets.get(marketId);
      this.#markets.delete(marketId);
      for (const outcomeId of market?.outcomeIds ?? []) this.#quotes.delete(outcomeId);
      if (market && !market.isBinary) removed.push(answersTopic(marketId));
    }
    return this.#topics('unsubscribe', removed);
  }

  /** The venue sends no snapshots: a poll reads the state. */
  refresh(): string[] {
    return [];
  }

  check(): FeedLoss[] {
    return [];
  }

  book(): undefined {
    return undefined;
  }

  take(frame: string, nowMs: number): FeedReading {
    const reading = emptyReading();
    const parsed = parseFrame(frame);
    const model = parsed.ok ? readModel(envelope, parsed.value) : parsed;
    if (!model.ok) {
      quarantine(reading, 'trades', parsed.ok ? parsed.value : frame, model.rejection);
      return reading;
    }
    const { type, topic, success, error, data } = model.value;
    if (type === 'ack') {
      // The acknowledgement of the topics, and of each ping.
      reading.notices.push(success === false ? failure(error) : { kind: 'pong' });
      skip(reading, success === false ? 'venue_error' : 'control');
    } else if (type !== 'broadcast') {
      reading.unknowns.push({ field: 'feed.type', value: type });
      skip(reading, 'unknown_type');
    } else this.#broadcast(topic ?? '', data, reading, nowMs);
    return reading;
  }

  #broadcast(topic: string, data: unknown, reading: FeedReading, nowMs: number): undefined {
    const list = (field: string) => (isObject(data) && Array.isArray(data[field]) ? data[field] : undefined);
    const malformed = { reason: 'invalid_field', detail: `data of ${topic.slice(0, 100)}` };
    if (topic === NEW_BET) {
      const bets = list('bets');
      if (bets === undefined) return quarantine(reading, 'trades', data, malformed);
      return bets.length === 0 ? skip(reading, 'empty') : this.#bets(bets, reading, nowMs);
    }
    if (topic === UPDATED_CONTRACT || topic === NEW_CONTRACT) {
      const contract = isObject(data) ? data['contract'] : undefined;
      if (contract === undefined) return quarantine(reading, 'markets', data, malformed);
      return this.#contract(contract, topic === NEW_CONTRACT, reading, nowMs);
    }
    const contractId = UPDATED_ANSWERS.exec(topic)?.[1];
    if (contractId !== undefined) {
      const answers = list('answers');
      if (answers === undefined) return quarantine(reading, 'prices', data, malformed);
      if (answers.length === 0) return skip(reading, 'empty');
      for (const answer of answers) this.#answer(contractId, answer, reading, nowMs);
      return;
    }
    reading.unknowns.push({ field: 'feed.topic', value: topic.slice(0, 100) });
    return skip(reading, 'unknown_type');
  }

  /** Each bet is a trade, with the id and the time of the polls, or a skip with the reason of the polls; it also states a probability. */
  #bets(bets: readonly unknown[], reading: FeedReading, nowMs: number): undefined {
    const batch = parseBets(bets, nowMs);
    reading.received += bets.length;
    reading.applied += batch.records.length;
    reading.rejected.push(...batch.rejected);
    reading.skipped.push(...batch.skipped);
    reading.unknowns.push(...batch.unknowns);
    for (const record of batch.records) reading.updates.push({ kind: 'trade', record });
    for (const raw of bets) {
      const bet = readModel(feedBet, raw);
      const atMs = betTimeMs(raw, nowMs);
      if (!bet.ok || atMs === undefined) continue;
      sawVenueTime(reading, atMs);
      this.#quote(bet.value.contractId, bet.value.answerId ?? undefined, bet.value.probAfter, atMs, reading);
    }
  }

  #contract(raw: unknown, isNew: boolean, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedContract, raw);
    if (!model.ok) return quarantine(reading, 'markets', raw, model.rejection);
    const { id, prob } = model.value;
    const isState = isNew || STATE_FIELDS.some((field) => model.value[field] !== undefined);
    if (!isState && prob === undefined) return skip(reading, 'metadata');
    if (isState) reading.updates.push({ kind: 'market', marketId: id, change: isNew ? 'created' : 'updated' });
    if (prob !== undefined && !isState && readProb(prob) === undefined) {
      return quarantine(reading, 'prices', raw, { reason: 'price_out_of_range', detail: 'prob' }, id);
    }
    this.#quote(id, undefined, prob, nowMs, reading);
    reading.received += 1;
    reading.applied += 1;
  }

  #answer(contractId: string, raw: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedAnswer, raw);
    if (!model.ok) return quarantine(reading, 'prices', raw, model.rejection, contractId);
    const { id, prob } = model.value;
    if (prob === undefined || prob === null) return skip(reading, 'metadata');
    if (readProb(prob) === undefined) {
      return quarantine(reading, 'prices', raw, { reason: 'price_out_of_range', detail: 'prob' }, id);
    }
    reading.received += 1;
    reading.applied += 1;
    this.#quote(contractId, id, prob, nowMs, reading);
  }

  /** Emits a changed price of a subscribed outcome; of a binary market, both sides. */
  #quote(contractId: string, answerId: string | undefined, prob: unknown, atMs: number, reading: FeedReading): void {
    const market = this.#markets.get(contractId);
    const price = readProb(prob);
    if (market === undefined || price === undefined || (answerId === undefined) !== market.isBinary) return;
    const prices: [string, Decimal][] =
      answerId === undefined
        ? [
            [outcomeIdOf(contractId, 'YES'), price],
            [outcomeIdOf(contractId, 'NO'), subtractDecimals(ONE, price)],
          ]
        : [[outcomeIdOf(contractId, answerId), price]];
    for (const [outcomeId, value] of prices) {
      const before = this.#quotes.get(outcomeId);
      if (!market.outcomeIds.has(outcomeId) || before?.price === value || (before && atMs < before.atMs)) continue;
      const asOfMs = Math.max(Math.floor(atMs), (before?.asOfMs ?? 0) + 1);
      this.#quotes.set(outcomeId, { price: value, asOfMs, atMs });
      reading.updates.push({ kind: 'quote', record: { outcomeId, asOfMs, price: value } });
    }
  }

  #topics(type: 'subscribe' | 'unsubscribe', topics: readonly string[]): string[] {
    const messages: string[] = [];
    for (let at = 0; at < topics.length; at += TOPICS_PER_MESSAGE) {
      messages.push(this.#command(type, { topics: topics.slice(at, at + TOPICS_PER_MESSAGE) }));
    }
    return messages;
  }

  #command(type: string, fields: object): string {
    const txid = this.#nextTxid;
    this.#nextTxid += 1;
    return JSON.stringify({ type, txid, ...fields });
  }
}

function answersTopic(marketId: string): string {
  return `contract/${marketId}/updated-answers`;
}

function failure(error: string | null | undefined) {
  return { kind: 'error' as const, code: 'ack', message: (error ?? '').slice(0, 200), isFinal: false };
}

function readProb(value: unknown): Decimal | undefined {
  const price = typeof value === 'number' ? parseDecimal(value) : null;
  return price !== null && isUnitPrice(price) ? price : undefined;
}

/**
 * Messages of the WebSocket, from the venue's documentation and source only: no recording exists. Fields that decide identity or money are
 * strict.
 */

const id = z.string().regex(VENUE_ID);

const envelope = z.object({
  type: z.string().min(1).max(60),
  topic: z.string().min(1).max(300).nullish(),
  success: z.boolean().nullish(),
  error: z.string().nullish().catch(undefined),
  data: z.unknown().optional(),
});

/** `probAfter` is the probability of YES of the market, or of the answer, after the bet. */
const feedBet = z.object({
  contractId: id,
  answerId: id.nullish(),
  createdTime: z.number(),
  probAfter: z.number().nullish(),
});

/** A part of a contract: the changed fields. */
const feedContract = z.looseObject({ id });

const feedAnswer = z.looseObject({ id, prob: z.number().nullish() });
