// OpenAI Responses: the request, and the reply as a stream or as one JSON object.
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

const usage = {
  input_tokens: USAGE.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: USAGE.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: USAGE.input + USAGE.output,
}

export function parseResponses(body: JsonObject): ParsedRequest {
  const { effort } = asObject(body.reasoning)
  return {
    model: asString(body.model),
    effort: typeof effort === 'string' ? effort : null,
    stream: body.stream === true,
    tools: [body, ...asArray(body.input)].flatMap(({ tools }) => toolNames(tools)),
    messages:
      typeof body.input === 'string'
        ? [{ role: 'user', text: body.input }]
        : asArray(body.input).flatMap(parseItem),
  }
}

/** Codex also sends tools as an item of the input, and groups them in namespaces. */
const toolNames = (tools: unknown): string[] =>
  asArray(tools).flatMap((tool) =>
    tool.type === 'namespace' ? toolNames(tool.tools) : [asString(tool.name) || asString(tool.type)],
  )

function parseItem(item: JsonObject): Message[] {
  if (/_call_output$/.test(asString(item.type)))
    return [{ role: 'tool', text: textsOf(item.output).join('') }]
  return textsOf(item.content).map((text) => ({ role: asString(item.role), text }))
}

export function createResponsesEncoder(model: string, id: string): StreamEncoder {
  const output: object[] = []
  let text = ''
  let sequence = 0
  const emit = (type: string, data: object) => sse(type, { type, sequence_number: sequence++, ...data })
  const addItem = (item: object) => {
    const output_index = output.push(item) - 1
    return (
      emit('response.output_item.added', { output_index, item }) +
      emit('response.output_item.done', { output_index, item })
    )
  }
  const messageItem = (status: string) => ({
    id: `msg_${id}_${output.length}`,
    type: 'message',
    role: 'assistant',
    status,
    content: status === 'completed' ? [{ type: 'output_text', text, annotations: [] }] : [],
  })
  const finishText = () => {
    if (text === '') return ''
    const item = messageItem('completed')
    const output_index = output.push(item) - 1
    text = ''
    return emit('response.output_item.done', { output_index, item })
  }
  const response = (status: string) => ({ ...wholeResponse(model, id, ''), status, output })
  return {
    start: () => emit('response.created', { response: { ...response('in_progress'), usage: null } }),
    reasoning: (summary) =>
      addItem({
        id: `rs_${id}`,
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: summary }],
        encrypted_content: null,
      }),
    text: (delta) => {
      const item = messageItem('in_progress')
      const output_index = output.length
      const added = text === '' ? emit('response.output_item.added', { output_index, item }) : ''
      text += delta
      const position = { item_id: item.id, output_index, content_index: 0 }
      return added + emit('response.output_text.delta', { ...position, delta })
    },
    tool: ({ id: callId, name, input, namespace }) =>
      finishText() +
      addItem(
        typeof input.freeform === 'string'
          ? { type: 'custom_tool_call', id: `ctc_${callId}`, call_id: callId, name, input: input.freeform }
          : {
              type: 'function_call',
              id: `fc_${callId}`,
              call_id: callId,
              name,
              ...(namespace !== undefined && { namespace }),
              arguments: JSON.stringify(input),
              status: 'completed',
            },
      ),
    finish: () => finishText() + emit('response.completed', { response: response('completed') }),
  }
}

/** The reply to a request without `stream`. */
export const wholeResponse = (model: string, id: string, text: string) => ({
  id: `resp_${id}`,
  object: 'response',
  created_at: 1,
  model,
  status: 'completed',
  error: null,
  output: [
    {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
  ],
  usage,
})
