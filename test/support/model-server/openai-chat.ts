// OpenAI Chat Completions: the request, and the reply as a stream or as one JSON object.
import {
  asArray,
  asObject,
  asString,
  type JsonObject,
  type ParsedRequest,
  type StreamEncoder,
  sse,
  textsOf,
  USAGE,
} from './model-request.ts'

const usage = {
  prompt_tokens: USAGE.input,
  completion_tokens: USAGE.output,
  total_tokens: USAGE.input + USAGE.output,
}

export const parseChat = (body: JsonObject): ParsedRequest => ({
  model: asString(body.model),
  effort: typeof body.reasoning_effort === 'string' ? body.reasoning_effort : null,
  stream: body.stream === true,
  tools: asArray(body.tools).map((tool) => asString(asObject(tool.function).name)),
  messages: asArray(body.messages).flatMap((message) =>
    textsOf(message.content).map((text) => ({ role: asString(message.role), text })),
  ),
})

export function createChatEncoder(model: string, id: string): StreamEncoder {
  let toolCount = 0
  const emit = (delta: object, finish_reason: string | null = null) =>
    sse(null, {
      id,
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason }],
    })
  return {
    start: () => emit({ role: 'assistant', content: '' }),
    reasoning: (text) => emit({ reasoning_content: text }),
    text: (text) => emit({ content: text }),
    tool: ({ id, name, input }) =>
      emit({
        tool_calls: [
          { index: toolCount++, id, type: 'function', function: { name, arguments: JSON.stringify(input) } },
        ],
      }),
    finish: () =>
      emit({}, toolCount > 0 ? 'tool_calls' : 'stop') +
      sse(null, { id, object: 'chat.completion.chunk', created: 1, model, choices: [], usage }) +
      'data: [DONE]\n\n',
  }
}

/** The reply to a request without `stream`. */
export const wholeChat = (model: string, id: string, text: string) => ({
  id,
  object: 'chat.completion',
  created: 1,
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  usage,
})

/** Also the errors of the Responses API. */
export const openaiError = (message: string, code: string | null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
