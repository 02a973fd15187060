// When pi counts as signed in.
import t from 'tap'
import { pi } from '../../../../agent/prompts/providers/pi.ts'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'

const HOME = '/home/user'
const AUTH = `${HOME}/.pi/agent/auth.json`
const MODELS = `${HOME}/.pi/agent/models.json`
const SONNET = 'anthropic/claude-sonnet-5-5'

const check = (
  model: string | null,
  { env = {}, files = {} }: { env?: Record<string, string>; files?: Record<string, string> } = {},
) =>
  pi.isSignedIn({
    model: selectModel(model),
    env: { HOME, ...env },
    readText: async (path) => files[path] ?? null,
  })

t.test('an empty auth.json means nothing', async (t) => {
  for (const text of ['{}', '', '{', '{"anthropic":{"type":"api_key","key":""}}']) {
    t.equal(await check(null, { files: { [AUTH]: text } }), false, text)
    t.equal(await check(SONNET, { files: { [AUTH]: text } }), false, text)
  }
})

t.test('auth.json has credentials by provider', async (t) => {
  for (const entry of [
    { type: 'api_key', key: 'k' },
    { type: 'oauth', refresh: 'r', access: 'a', expires: 0 },
  ]) {
    const files = { [AUTH]: JSON.stringify({ anthropic: entry }) }
    t.equal(await check(null, { files }), true)
    t.equal(await check(SONNET, { files }), true)
    t.equal(await check('openai/gpt-6', { files }), false, 'of another provider')
    t.equal(await check('sonnet', { files }), true, 'pi searches the providers for the model')
  }
})

t.test('PI_CODING_AGENT_DIR moves the files', async (t) => {
  const env = { PI_CODING_AGENT_DIR: '~/pi' }
  t.strictSame(pi.credentialFiles({ HOME, ...env }).slice(0, 2), [
    '/home/user/pi/auth.json',
    '/home/user/pi/models.json',
  ])
  const content = '{"anthropic":{"type":"api_key","key":"k"}}'
  t.equal(await check(SONNET, { env, files: { '/home/user/pi/auth.json': content } }), true)
})

t.test('models.json has keys of providers', async (t) => {
  const files = { [MODELS]: '{"providers":{"anthropic":{"apiKey":"$KEY"},"local":{"apiKey":"x"}}} // local' }
  t.equal(await check(null, { files }), true)
  t.equal(await check(SONNET, { files }), true)
  t.equal(await check('local/model', { files }), true)
  t.equal(await check('openai/gpt-6', { files }), false)
})

t.test('keys in the environment count for their provider', async (t) => {
  t.equal(await check(SONNET, { env: { ANTHROPIC_OAUTH_TOKEN: 'placeholder' } }), true)
  t.equal(await check(SONNET, { env: { OPENAI_API_KEY: 'k' } }), false)
  t.equal(await check(null, { env: { OPENAI_API_KEY: 'k' } }), true)
  t.equal(await check('deepseek/deepseek-chat', { env: { DEEPSEEK_API_KEY: 'k' } }), true)
  t.equal(await check('openai-codex/gpt-6', { env: { OPENAI_API_KEY: 'k' } }), false, 'needs a sign-in')
})

t.test('a provider that only the CLI knows is not refused', async (t) => {
  t.equal(await check('my-company/model'), true)
})

t.test('the hint names the variable of the provider', async (t) => {
  t.match(
    pi.signInHint(selectModel('xai/grok')),
    /box secrets set XAI_API_KEY.*box mount BOX XAI_API_KEY.*\/login/,
  )
  t.match(pi.signInHint(selectModel('amazon-bedrock/m')), /AWS_PROFILE/)
  t.match(pi.signInHint(null), /such as ANTHROPIC_API_KEY/)
})
