// Combinations of a coding agent with a model or an option that cannot work. Pure.
import type { PromptRequest } from './api/prompts.ts'
import { ApiError } from './errors.ts'

/**
 * @param options.model with the prefix of its backend; undefined: not known yet, or the default of the coding agent
 * @throws ApiError invalid_request
 */
export function assertSupported({
  provider,
  model,
  auto,
}: Pick<PromptRequest, 'provider' | 'model' | 'auto'>): void {
  if (provider === 'pi' && auto === false)
    throw new ApiError('invalid_request', 'pi runs all tools without asking. Omit auto, or send auto: true.')
  if (model === undefined) return
  // DeepSeek only has the chat API, which Codex no longer supports.
  if (provider === 'codex' && model.startsWith('deepseek/'))
    throw new ApiError(
      'invalid_request',
      'codex cannot use deepseek models, because Codex requires the Responses API. Use claude, opencode or pi.',
    )
  if (provider === 'opencode' && !/^[^/]+\//.test(model))
    throw new ApiError(
      'invalid_request',
      'model must name its provider for opencode, such as anthropic/claude-sonnet-5-5',
    )
}
