// The fields of a prompt that the agent stores: in the queue and, once it has started, with its run.
import * as z from 'zod'
import {
  CONVERSATION_ID_PATTERN,
  PROVIDERS,
  REASONING_EFFORTS,
  RUN_ID_PATTERN,
} from '../../shared/field-values.ts'

export const promptFieldsSchema = z.object({
  id: z.string().regex(RUN_ID_PATTERN),
  conversationId: z.string().regex(CONVERSATION_ID_PATTERN),
  provider: z.enum(PROVIDERS),
  model: z.string().nullable(),
  reasoningEffort: z.enum(REASONING_EFFORTS).nullable(),
  auto: z.boolean(),
  cwd: z.string(),
  promptPreview: z.string(),
})
