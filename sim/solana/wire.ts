import { isConfigured, type TokenAccount, type TokenBalance, type Transaction } from './chain.ts';
import { RENT_LAMPORTS, SOL_MINT, TOKEN_PROGRAM } from './tokens.ts';

type Wire = Record<string, unknown>;

/** An amount in the smallest unit in the three notations of the node. */
function uiAmount(amount: bigint, decimals: number): Wire {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
  const short = decimals === 0 ? text : text.replace(/\.?0+$/, '');
  return { amount: String(amount), decimals, uiAmount: Number(short), uiAmountString: short };
}

function tokenBalance({ accountIndex, owner, token, amount }: TokenBalance): Wire {
  return {
    accountIndex,
    mint: token.mint,
    owner,
    programId: token.programId,
    uiTokenAmount: uiAmount(amount, token.decimals),
  };
}

function errorOf({ error }: Transaction): unknown {
  return error === undefined ? null : { InstructionError: [0, { [error]: 6001 }] };
}

/** A row of `getSignaturesForAddress`. */
export function signatureRow(transaction: Transaction): Wire {
  return {
    blockTime: transaction.second,
    confirmationStatus: 'finalized',
    err: errorOf(transaction),
    memo: null,
    signature: transaction.signature,
    slot: transaction.slot,
  };
}

/**
 * `getTransaction` in `jsonParsed`: the account list includes the accounts of lookup tables. The answer contains its version only for
 * clients that declare the highest one they know.
 */
export function parsedTransaction(transaction: Transaction, showsVersion = true): Wire {
  const { accounts, loaded, version, priorityFee } = transaction;
  const own = accounts.length - loaded;
  const error = errorOf(transaction);
  return {
    blockTime: transaction.second,
    slot: transaction.slot,
    ...(showsVersion && { version }),
    meta: {
      computeUnitsConsumed: 450,
      err: error,
      fee: Number(transaction.fee),
      innerInstructions: [],
      loadedAddresses: { readonly: [], writable: accounts.slice(own) },
      logMessages: [],
      preBalances: transaction.before.map(Number),
      postBalances: transaction.after.map(Number),
      preTokenBalances: transaction.tokensBefore.map(tokenBalance),
      postTokenBalances: transaction.tokensAfter.map(tokenBalance),
      rewards: [],
      status: error === null ? { Ok: null } : { Err: error },
    },
    transaction: {
      message: {
        accountKeys: accounts.map((pubkey, index) => ({
          pubkey,
          signer: index === 0,
          source: index < own ? 'transaction' : 'lookupTable',
          writable: true,
        })),
        instructions: [],
        recentBlockhash: transaction.signature.slice(0, 44),
        ...(version === 0 && { addressTableLookups: [] }),
        ...(isConfigured(version) && {
          transactionConfig: {
            computeUnitLimit: 450,
            heapSize: null,
            loadedAccountsDataSizeLimit: 256_000,
            priorityFee: Number(priorityFee),
          },
        }),
      },
      signatures: [transaction.signature],
    },
  };
}

/** A row of `getTokenAccountsByOwner` in `jsonParsed`. */
export function tokenAccountRow({ address, owner, token, amount }: TokenAccount): Wire {
  const isNative = token.mint === SOL_MINT;
  return {
    pubkey: address,
    account: {
      data: {
        parsed: {
          info: {
            isNative,
            mint: token.mint,
            owner,
            state: 'initialized',
            tokenAmount: uiAmount(amount, token.decimals),
            ...(isNative && { rentExemptReserve: uiAmount(RENT_LAMPORTS, token.decimals) }),
          },
          type: 'account',
        },
        program: token.programId === TOKEN_PROGRAM ? 'spl-token' : 'spl-token-2022',
        space: 165,
      },
      executable: false,
      lamports: Number(RENT_LAMPORTS + (isNative ? amount : 0n)),
      owner: token.programId,
      rentEpoch: 18446744073709552000,
      space: 165,
    },
  };
}
