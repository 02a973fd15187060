// Combinations of a coding agent with a model or an option that cannot work are refused with what to do.
import t from 'tap'
import { assertSupported } from '../../shared/prompt-combinations.ts'

const UNSUPPORTED = [
  [{ provider: 'pi', auto: false }, /pi runs all tools without asking\. Omit auto/],
  [{ provider: 'codex', model: 'deepseek/deepseek-chat' }, /codex cannot use deepseek models.*Use claude/],
  [{ provider: 'opencode', model: 'claude-opus-5-5' }, /such as anthropic\//],
  [{ provider: 'opencode', model: '/claude-opus-5-5' }, /such as anthropic\//],
] as const
const SUPPORTED = [
  { provider: 'pi' },
  { provider: 'pi', auto: true },
  { provider: 'claude', auto: false, model: 'deepseek/deepseek-chat' },
  { provider: 'codex', model: 'openrouter/deepseek/deepseek-chat' },
  { provider: 'codex', model: 'gpt-6' },
  { provider: 'opencode' },
  { provider: 'opencode', model: 'anthropic/claude-opus-5-5' },
] as const

t.test('a combination that cannot work', async (t) => {
  for (const [options, message] of UNSUPPORTED)
    t.throws(() => assertSupported(options), { code: 'invalid_request', message })
})

t.test('a combination that works', async (t) => {
  for (const options of SUPPORTED) t.doesNotThrow(() => assertSupported(options), JSON.stringify(options))
})
