// Parses the server-sent events of a process stream (spec §4.14) and checks their fields.

import type { EventSourceMessage } from 'eventsource-parser'
import type { OpenResponse } from '../../client/http/transport.ts'
import type { StreamEvents } from '../../shared/api/processes.ts'
import {
  checkFields,
  type FieldValidators,
  isIntegerOrNull,
  isOffset,
  isString,
  isStringOrNull,
  parseObject,
} from '../connection/server-data.ts'
import { readServerSentEvents } from './server-sent-events.ts'

export type StreamName = 'stdout' | 'stderr'
export type StreamEvent = {
  [N in keyof StreamEvents]: { name: N; data: StreamEvents[N] }
}[keyof StreamEvents]

/** More than three times the largest event, which has STREAM_EVENT_BYTES of shared/api/processes.ts. */
const MAX_EVENT_CHARS = 1024 * 1024

export const readEvents = (response: OpenResponse): AsyncGenerator<StreamEvent, void, undefined> =>
  readServerSentEvents(response, { maxChars: MAX_EVENT_CHARS, parse: parseEvent })

/** Missing unless it was requested, and from an older coordinator. */
const isTime = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && /^[\dTZ:.+-]{1,40}$/.test(value))

const OUTPUT_VALIDATORS: FieldValidators = {
  data: isString,
  offset: isOffset,
  nextOffset: isOffset,
  at: isTime,
}

/** For each event, the fields that `box logs` uses. */
const FIELD_VALIDATORS: Record<keyof StreamEvents, FieldValidators> = {
  attached: { stdoutOffset: isOffset, stderrOffset: isOffset },
  stdout: OUTPUT_VALIDATORS,
  stderr: OUTPUT_VALIDATORS,
  heartbeat: {},
  reconnect: {},
  exit: {
    status: isString,
    exitCode: isIntegerOrNull,
    signal: isStringOrNull,
    stdoutOffset: isOffset,
    stderrOffset: isOffset,
  },
  error: { code: isString, message: isString },
}

/** Returns null for an unknown event: a newer coordinator may send additional events. */
function parseEvent({ event: name = '', data: json }: EventSourceMessage): StreamEvent | null {
  if (!Object.hasOwn(FIELD_VALIDATORS, name)) return null
  const data = parseObject(json, 'an event')
  checkFields(`the event ${name}`, data, FIELD_VALIDATORS[name as keyof StreamEvents])
  return { name, data } as unknown as StreamEvent
}
