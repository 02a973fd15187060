// Anthropic Messages: the request, and the reply as a stream or as one JSON object.
import {
  asArray,
  asObject,
  asString,
  type JsonObject,
  type Message,
  type ParsedRequest,
  type StreamEncoder,
  sse,
  textsOf,
  USAGE,
} from './model-request.ts'

const usage = { input_tokens: USAGE.input, output_tokens: USAGE.output }

export function parseMessages(body: JsonObject): ParsedRequest {
  const effort = asObject(body.output_config).effort
  return {
    model: asString(body.model),
    effort: typeof effort === 'string' ? effort : null,
    stream: body.stream === true,
    tools: asArray(body.tools).map((tool) => asString(tool.name)),
    messages: asArray(body.messages).flatMap(parseMessage),
  }
}

function parseMessage(message: JsonObject): Message[] {
  const role = asString(message.role)
  if (typeof message.content === 'string') return [{ role, text: message.content }]
  return asArray(message.content).flatMap((block) => {
    if (block.type === 'text') return [{ role, text: asString(block.text) }]
    if (block.type === 'tool_result') return [{ role: 'tool', text: textsOf(block.content).join('') }]
    return []
  })
}

export function createMessagesEncoder(model: string, id: string): StreamEncoder {
  let index = -1
  let open = false
  let hasTools = false
  const emit = (data: JsonObject & { type: string }) => sse(data.type, data)
  const closeBlock = () => {
    const stop = open ? emit({ type: 'content_block_stop', index }) : ''
    open = false
    return stop
  }
  const openBlock = (content_block: object) => {
    const stop = closeBlock()
    index += 1
    open = true
    return stop + emit({ type: 'content_block_start', index, content_block })
  }
  const delta = (delta: object) => emit({ type: 'content_block_delta', index, delta })
  let inText = false
  return {
    start: () => emit({ type: 'message_start', message: { ...message(model, id), content: [] } }),
    reasoning: (thinking) =>
      openBlock({ type: 'thinking', thinking: '', signature: '' }) +
      delta({ type: 'thinking_delta', thinking }) +
      delta({ type: 'signature_delta', signature: 'c2lnbmF0dXJl' }),
    text: (text) => {
      const start = inText ? '' : openBlock({ type: 'text', text: '' })
      inText = true
      return start + delta({ type: 'text_delta', text })
    },
    tool: ({ id, name, input }) => {
      inText = false
      hasTools = true
      return (
        openBlock({ type: 'tool_use', id, name, input: {} }) +
        delta({ type: 'input_json_delta', partial_json: JSON.stringify(input) })
      )
    },
    finish: () =>
      closeBlock() +
      emit({
        type: 'message_delta',
        delta: { stop_reason: hasTools ? 'tool_use' : 'end_turn', stop_sequence: null },
        usage: { output_tokens: USAGE.output },
      }) +
      emit({ type: 'message_stop' }),
  }
}

const message = (model: string, id: string) => ({
  id,
  type: 'message',
  role: 'assistant',
  model,
  stop_reason: null,
  stop_sequence: null,
  usage,
})

/** The reply to a request without `stream`. */
export const wholeMessage = (model: string, id: string, text: string) => ({
  ...message(model, id),
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
})

export const messagesError = (status: number, message: string) => ({
  type: 'error',
  error: { type: ERROR_TYPES[status] ?? 'api_error', message },
})
const ERROR_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}
