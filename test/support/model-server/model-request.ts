// A request to the fake model server, in one form for all three APIs.
import type { IncomingHttpHeaders } from 'node:http'

export type JsonObject = { [key: string]: unknown }
export type Message = { role: string; text: string }

/** What an API's parser reads from a body. */
export type ParsedRequest = {
  model: string
  /** The requested reasoning effort; null: none. */
  effort: string | null
  stream: boolean
  /** Names of the offered tools. */
  tools: string[]
  /** The history, with the results of tools in the role `tool`. Several texts of one message are several messages. */
  messages: Message[]
}

export type ModelRequest = ParsedRequest & {
  api: 'messages' | 'responses' | 'chat'
  path: string
  headers: IncomingHttpHeaders
  body: JsonObject
  /** Offers no tools: a title, a summary or a probe. Is not answered from the script. */
  auxiliary: boolean
}

/** The texts that the user wrote, oldest first. */
export const userTexts = (request: ParsedRequest): string[] =>
  request.messages.filter(({ role }) => role === 'user').map(({ text }) => text)

export const toolResults = (request: ParsedRequest): string[] =>
  request.messages.filter(({ role }) => role === 'tool').map(({ text }) => text)

export const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
export const asArray = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(asObject) : [])
export const asString = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The texts of a content that is a string or an array of parts. */
export const textsOf = (content: unknown): string[] =>
  typeof content === 'string'
    ? [content]
    : asArray(content)
        .map((part) => asString(part.text))
        .filter((part) => part !== '')

/** Encodes one reply as a stream of server-sent events. Each function returns the bytes to send. */
export type StreamEncoder = {
  start(): string
  reasoning(text: string): string
  text(delta: string): string
  tool(call: { id: string; name: string; input: JsonObject; namespace?: string }): string
  finish(): string
}

export const USAGE = { input: 11, output: 7 }
export const sse = (event: string | null, data: object): string =>
  `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
