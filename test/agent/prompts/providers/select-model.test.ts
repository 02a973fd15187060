// The backend that a model selects.
import t from 'tap'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'

t.test('a prefix selects a backend', async (t) => {
  t.strictSame(selectModel('openrouter/anthropic/claude-sonnet-5-5'), {
    full: 'openrouter/anthropic/claude-sonnet-5-5',
    backend: 'openrouter',
    name: 'anthropic/claude-sonnet-5-5',
  })
  t.match(selectModel('deepseek/deepseek-chat'), { backend: 'deepseek', name: 'deepseek-chat' })
  t.match(selectModel('amazon-bedrock/us.anthropic.claude-opus-5-5'), {
    backend: 'amazon-bedrock',
    name: 'us.anthropic.claude-opus-5-5',
  })
})

t.test('other models belong to the CLI itself', async (t) => {
  t.equal(selectModel(null), null)
  for (const model of ['claude-sonnet-5-5', 'anthropic/claude-sonnet-5-5', 'openrouter', 'deepseek/'])
    t.strictSame(selectModel(model), { full: model, backend: null, name: model })
})
