// When OpenCode counts as signed in.
import t from 'tap'
import { opencode } from '../../../../agent/prompts/providers/opencode.ts'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'

const HOME = '/home/user'
const AUTH = `${HOME}/.local/share/opencode/auth.json`
const CONFIG = `${HOME}/.config/opencode/opencode.json`
const SONNET = 'anthropic/claude-sonnet-5-5'

const check = (
  model: string | null,
  { env = {}, files = {} }: { env?: Record<string, string>; files?: Record<string, string> } = {},
) =>
  opencode.isSignedIn({
    model: selectModel(model),
    env: { HOME, ...env },
    readText: async (path) => files[path] ?? null,
  })

t.test('without a credential, the free models do not count', async (t) => {
  t.equal(await check(null), false)
  t.equal(await check(SONNET), false)
  t.equal(await check('opencode/a-free-model'), true, 'the model is requested')
})

t.test('auth.json has credentials by provider', async (t) => {
  for (const entry of [
    { type: 'api', key: 'k' },
    { type: 'oauth', refresh: 'r', access: 'a', expires: 0 },
  ]) {
    const files = { [AUTH]: JSON.stringify({ anthropic: entry }) }
    t.equal(await check(null, { files }), true)
    t.equal(await check(SONNET, { files }), true)
    t.equal(await check('openai/gpt-6', { files }), false, 'of another provider')
  }
  for (const text of ['', '{', '[]', '{}', '{"anthropic":{}}', '{"anthropic":{"type":"api","key":""}}'])
    t.equal(await check(SONNET, { files: { [AUTH]: text } }), false, text)
})

t.test('XDG_DATA_HOME and OPENCODE_AUTH_CONTENT move auth.json', async (t) => {
  const content = '{"anthropic":{"type":"api","key":"k"}}'
  const env = { XDG_DATA_HOME: '/data' }
  t.equal(opencode.credentialFiles({ HOME, ...env })[0], '/data/opencode/auth.json')
  t.equal(await check(SONNET, { env, files: { '/data/opencode/auth.json': content } }), true)
  t.equal(await check(SONNET, { env, files: { [AUTH]: content } }), false)
  t.equal(await check(SONNET, { env: { OPENCODE_AUTH_CONTENT: content } }), true)
})

t.test('keys in the environment count for their provider', async (t) => {
  const env = { ANTHROPIC_API_KEY: 'placeholder' }
  t.equal(await check(null, { env }), true)
  t.equal(await check(SONNET, { env }), true)
  t.equal(await check('openai/gpt-6', { env }), false)
  t.equal(await check('google/gemini-4', { env: { GOOGLE_API_KEY: 'k' } }), true)
  t.equal(await check('openrouter/x/y', { env: { OPENROUTER_API_KEY: 'k' } }), true)
  t.equal(await check('openrouter/x/y', { env }), false)
})

t.test('keys in the configuration count', async (t) => {
  const files = {
    [CONFIG]: `{
      // a comment
      "provider": { "anthropic": { "options": { "apiKey": "{env:KEY}" } }, },
    }`,
  }
  t.equal(await check(SONNET, { files }), true)
  t.equal(await check(null, { files }), true)
  t.equal(await check('openai/gpt-6', { files }), false)
})

t.test('without a model in the request, the configured model counts', async (t) => {
  const files = { [CONFIG]: '{"model":"openai/gpt-6"}' }
  t.equal(await check(null, { files, env: { ANTHROPIC_API_KEY: 'k' } }), false)
  t.equal(await check(null, { files, env: { OPENAI_API_KEY: 'k' } }), true)
})

t.test('a provider that only the CLI knows is not refused', async (t) => {
  t.equal(await check('my-company/model'), true)
})

t.test('Bedrock needs a credential of AWS', async (t) => {
  const model = 'amazon-bedrock/us.anthropic.claude-opus-5-5'
  t.equal(await check(model), false)
  t.equal(await check(model, { env: { AWS_PROFILE: 'work' } }), true)
  const files = { [`${HOME}/.aws/credentials`]: 'aws_access_key_id=A' }
  t.equal(await check(model, { files }), true)
  t.ok(opencode.credentialFiles({ HOME }).includes(`${HOME}/.aws/credentials`))
})

t.test('the hint names the variable of the provider', async (t) => {
  t.match(opencode.signInHint(selectModel('groq/llama')), /box mount BOX GROQ_API_KEY.*opencode auth login/)
  t.match(opencode.signInHint(selectModel('deepseek/deepseek-chat')), /DEEPSEEK_API_KEY/)
  t.match(opencode.signInHint(null), /such as ANTHROPIC_API_KEY/)
})
