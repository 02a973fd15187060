// The answer of a tool as a result of the protocol.
import type { Answer } from './tool.ts'

export const toResult = ({ text, data, image, task }: Answer<unknown>) => ({
  content: [
    { type: 'text' as const, text },
    ...(image === undefined ? [] : [{ type: 'image' as const, ...image }]),
  ],
  structuredContent: data as Record<string, unknown>,
  ...(task !== undefined && { resultType: 'task', ...task }),
})
