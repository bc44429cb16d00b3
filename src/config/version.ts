/** Part of the User-Agent of deliveries and venue requests, and of the OpenAPI document. A test keeps it equal to package.json. */
export const VERSION = '0.1.0';
