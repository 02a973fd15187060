// Limits the size of an event. Pure.
import type { PromptEvent } from '../../../shared/api/prompts.ts'
import { MAX_PROMPT_EVENT_BYTES } from '../../../shared/limits.ts'
import { boundedText } from '../providers/json-fields.ts'

const MAX_TOOL_NAME_CHARS = 1024
/** A character of text is at most a six-byte escape. 16 KiB are for the other fields. */
const MAX_TEXT_CHARS = Math.floor((MAX_PROMPT_EVENT_BYTES - 16 * 1024) / 6)

const byteLengthOf = (event: PromptEvent): number => Buffer.byteLength(JSON.stringify(event))

/** Returns the event and its size as JSON, at most MAX_PROMPT_EVENT_BYTES. */
export function boundEvent(event: PromptEvent): { event: PromptEvent; bytes: number } {
  const tool = event.tool && { ...event.tool, name: boundedText(event.tool.name, MAX_TOOL_NAME_CHARS) }
  const whole = { ...event, tool }
  const bytes = byteLengthOf(whole)
  if (bytes <= MAX_PROMPT_EVENT_BYTES) return { event: whole, bytes }
  const small = { ...whole, raw: null, tool: tool && { ...tool, input: null } }
  const smallBytes = byteLengthOf(small)
  if (smallBytes <= MAX_PROMPT_EVENT_BYTES) return { event: small, bytes: smallBytes }
  const truncated = { ...small, text: small.text && boundedText(small.text, MAX_TEXT_CHARS) }
  return { event: truncated, bytes: byteLengthOf(truncated) }
}
