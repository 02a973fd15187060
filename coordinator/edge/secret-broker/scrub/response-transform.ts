// What a response passes through on its way to the box: content codings are decoded, and values are masked.
import type { IncomingMessage } from 'node:http'
import { type Duplex, PassThrough } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { ResponseTransform } from '../../../http/forward/forward.ts'
import type { HeaderPair } from '../../../http/forward/raw-headers.ts'
import { BrokerError } from '../broker-error.ts'
import type { Matcher } from './matcher.ts'
import { ScrubStream } from './scrub-stream.ts'
import { WebSocketScrubStream } from './scrub-websocket.ts'
import { scrubText } from './scrubber.ts'

/** What is decoded is sent at once, and a body that ends early is not an error of its own. */
const ZLIB_OPTIONS = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const BROTLI_OPTIONS = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: () => createGunzip(ZLIB_OPTIONS),
  'x-gzip': () => createGunzip(ZLIB_OPTIONS),
  deflate: () => createInflate(ZLIB_OPTIONS),
  br: () => createBrotliDecompress(BROTLI_OPTIONS),
}
const MAX_CODINGS = 2

/** @param matchers none: there is nothing to mask, and bodies are sent as they are */
export function createResponseTransform(matchers: readonly Matcher[]): ResponseTransform {
  const hasMatcher = matchers.length > 0
  return {
    changeText: (text) => scrubText(matchers, text),
    createBodyStreams: (incoming) =>
      hasMatcher
        ? [...readCodings(incoming).map((coding) => createDecoder(coding)), new ScrubStream(matchers)]
        : [],
    changesLength: (incoming) => hasMatcher && readCodings(incoming).length > 0,
    createUpgradedStream: () => (hasMatcher ? new WebSocketScrubStream(matchers) : new PassThrough()),
  }
}

/**
 * The content codings in the order in which they are decoded.
 * @throws BrokerError for a coding in which values cannot be found
 */
export function readCodings({ headers }: Pick<IncomingMessage, 'headers'>): string[] {
  const codings = (headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity')
  const isSupported =
    codings.length <= MAX_CODINGS && codings.every((coding) => Object.hasOwn(DECODERS, coding))
  const transferCoding = headers['transfer-encoding'] ?? 'chunked'
  if (!isSupported || transferCoding.trim().toLowerCase() !== 'chunked')
    throw new BrokerError(
      'upstream_encoding',
      'The server has sent a response in an encoding in which secrets cannot be masked.',
    )
  return codings.toReversed()
}

const createDecoder = (coding: string): Duplex => DECODERS[coding]?.() ?? new PassThrough()

/** Removes the headers that do not describe the response any more, and those that lead the program around the broker. */
export function scrubHeaders(
  headers: readonly HeaderPair[],
  { matchers, isDecoded }: { matchers: readonly Matcher[]; isDecoded: boolean },
): HeaderPair[] {
  const removed = isDecoded
    ? /^(?:alt-svc|sec-websocket-extensions|content-encoding|content-length)$/i
    : /^(?:alt-svc|sec-websocket-extensions)$/i
  return headers
    .filter(([name]) => !removed.test(name))
    .map(([name, value]): HeaderPair => [scrubText(matchers, name), scrubText(matchers, value)])
}
