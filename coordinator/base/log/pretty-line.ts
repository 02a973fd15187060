// Formats the log for people: one short line per event, such as `19:41:02 INFO: box woken box=fig took=0.6s`.
import { prettyFactory } from 'pino-pretty'

type Stream = { getColorDepth?(): number; hasColors?(): boolean }
type Fields = Record<string, unknown>

/** These fields are printed in another form, or are only useful to a program. */
const HIDDEN_FIELDS = ['level', 'time', 'pid', 'hostname', 'msg', 'err', 'durationMs', 'reqId', 'generation']
const UUID = /^[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-)/
/** An id with a prefix, such as p_8b49a1c0… or user:usr_8b49a1c0…: the CLI accepts its unique beginning. */
const PREFIXED_ID = /^(?:[a-z]+:)?[a-z]+_[0-9a-f]{6}(?=[0-9a-f]{10,}$)/
const SIMPLE = /^[\w./:@,+-]+$/

/** @param stream decides whether the lines have colours */
export function createLineFormatter(stream: Stream): (line: string) => string {
  const format = prettyFactory({
    colorize: stream.hasColors?.() ?? false,
    translateTime: 'SYS:HH:MM:ss',
    hideObject: true,
    ignore: 'pid,hostname',
    customPrettifiers: {
      time: (time) => String(time),
    },
    messageFormat: (log, _messageKey, _levelLabel, { colors }) => formatMessage(log, colors.gray),
  })
  return (line) => format(line) ?? ''
}

function formatMessage(log: Fields, dim: (text: string) => string): string {
  const { msg = '', err, durationMs, box } = log
  const fields = Object.entries(log).filter(
    ([name, value]) =>
      !HIDDEN_FIELDS.includes(name) &&
      value !== undefined &&
      value !== null &&
      !(name === 'boxId' && box !== undefined),
  )
  const texts = fields.map(([name, value]) => `${escapeControls(name)}=${formatValue(value)}`)
  if (typeof durationMs === 'number') texts.push(`took=${(durationMs / 1000).toFixed(1)}s`)
  if (err !== undefined && err !== null) texts.push(formatError(err))
  const message = escapeControls(String(msg))
  return texts.length === 0 ? message : `${message} ${dim(texts.join(' '))}`
}

function formatValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const short = (UUID.exec(text) ?? PREFIXED_ID.exec(text))?.[0] ?? text
  return SIMPLE.test(short)
    ? short
    : escapeControls(typeof value === 'string' ? JSON.stringify(short) : short)
}

/** The message of an expected error; the stack of any other. */
function formatError(err: unknown): string {
  const { code, message, stack, cause } = err as { [name in string]?: unknown }
  if (typeof stack === 'string') return `\n${indent(escapeControls(stack))}`
  const text =
    typeof message === 'string' ? `error=${JSON.stringify(message)}` : `error=${JSON.stringify(err)}`
  const line = [text, ...(typeof code === 'string' ? [`code=${code}`] : [])].join(' ')
  return escapeControls(line) + (cause === undefined ? '' : ` ${formatError(cause)}`)
}

const indent = (text: string): string => text.replaceAll(/^/gm, '    ')

/** Text from boxes and clients must not control the terminal. */
const escapeControls = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
