/** /llms.txt (https://llmstxt.org): the entry of a language model into this service. */
export const LLMS_TEXT = `# oddswire

> Prediction-market data of several venues (Polymarket, Kalshi, Manifold, Limitless) in one form: markets, prices, order books, trades,
> candles and live streams, with price alerts and signed webhooks. The service reads markets; it does not trade.

Every request needs an API key: market data in the header "Authorization: Bearer KEY", webhooks and alerts in "X-API-Key: KEY". Answers have
the form {"success", "data", "meta"}; errors have "error.code" and "meta.request_id". Times of market data are epoch seconds. Prices of
outcomes are decimals between 0 and 1. "venue" in a path may be "all". "meta.history" of trades and candles states how complete they are.

## Contract

- [OpenAPI](/openapi.json): every route with its parameters, answers and error codes
- [AsyncAPI](/asyncapi.json): the messages of the streams
- [Documentation](/docs): the routes as a page, to try them

## Model Context Protocol

- [POST /mcp](/mcp): streamable HTTP without sessions, with the same key. Tools: search_markets, get_market, get_executable,
  get_fees, get_resolution, get_rules, get_history, list_alerts, create_alert, delete_alert, backtest_alert,
  get_coverage, list_archive_files

## First routes

- [GET /v1/all/markets?q=WORDS](/v1/all/markets): search
- [GET /v1/all/markets/MARKET_ID/prices](/v1/all/markets): prices of a market
- [GET /v1/all/markets/MARKET_ID/executable?side=buy&size=500](/v1/all/markets): the cost of an order with the fee
- [GET /v1/all/markets/MARKET_ID/candles?interval=1h](/v1/all/markets): history
- [GET /v1/all/markets/MARKET_ID/resolution](/v1/all/markets): its result, and how it came about
- [GET /v1/all/markets/MARKET_ID/rules](/v1/all/markets): the rules that decide it, with their versions
- [GET /v1/all/resolutions](/v1/all/resolutions): changes of results of all markets
- [POST /v1/alerts](/v1/alerts): an alert on a price
`;
