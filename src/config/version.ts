/** Shown in the User-Agent of deliveries and venue requests, and in the OpenAPI document. Kept equal to package.json by a test. */
export const VERSION = '0.1.0';
