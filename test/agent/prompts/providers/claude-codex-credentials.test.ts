// Whether Claude Code and Codex have a credential: variables, files and backends.
import t from 'tap'
import { claude } from '../../../../agent/prompts/providers/claude.ts'
import { codex } from '../../../../agent/prompts/providers/codex.ts'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'
import type { Provider } from '../../../../agent/prompts/providers/types.ts'

type Case = { env?: Record<string, string>; files?: Record<string, unknown>; model?: string }

function isSignedIn(provider: Provider, { env = {}, files = {}, model }: Case): Promise<boolean> {
  return provider.isSignedIn({
    model: selectModel(model ?? null),
    env: { HOME: '/home/user', ...env },
    readText: async (path) => {
      const content = files[path.replace('/home/user', '~')]
      if (content === undefined) return null
      return typeof content === 'string' ? content : JSON.stringify(content)
    },
  })
}

const CLAUDE_FILE = '~/.claude/.credentials.json'
const CODEX_FILE = '~/.codex/auth.json'
const CONFIG_FILE = '~/.codex/config.toml'
const FAKE_PROVIDER = 'model_provider = "mine"\n[model_providers.mine]\nbase_url = "http://localhost/v1"\n'

const SIGNED_IN: [string, Provider, Case][] = [
  ['a key of Anthropic', claude, { env: { ANTHROPIC_API_KEY: 'placeholder' } }],
  ['an auth token', claude, { env: { ANTHROPIC_AUTH_TOKEN: 'x' } }],
  ['a token of a subscription', claude, { env: { CLAUDE_CODE_OAUTH_TOKEN: 'x' } }],
  ['a sign-in', claude, { files: { [CLAUDE_FILE]: { claudeAiOauth: { accessToken: 'x' } } } }],
  [
    'another directory',
    claude,
    {
      env: { CLAUDE_CONFIG_DIR: '/config' },
      files: { '/config/.credentials.json': { claudeAiOauth: { accessToken: 'x' } } },
    },
  ],
  ['a key of the Console', claude, { files: { '~/.claude.json': { primaryApiKey: 'x' } } }],
  ['a helper', claude, { files: { '~/.claude/settings.json': { apiKeyHelper: '/bin/key' } } }],
  ['settings', claude, { files: { '~/.claude/settings.json': { env: { ANTHROPIC_API_KEY: 'x' } } } }],
  ['Bedrock by a variable', claude, { env: { CLAUDE_CODE_USE_BEDROCK: '1', AWS_BEARER_TOKEN_BEDROCK: 'x' } }],
  ['a backend', claude, { model: 'openrouter/x', env: { OPENROUTER_API_KEY: 'x' } }],
  ['a key of OpenAI', codex, { env: { OPENAI_API_KEY: 'x' } }],
  ['a key of codex', codex, { env: { CODEX_API_KEY: 'x' } }],
  ['a stored key', codex, { files: { [CODEX_FILE]: { OPENAI_API_KEY: 'x', tokens: null } } }],
  ['a sign-in', codex, { files: { [CODEX_FILE]: { OPENAI_API_KEY: null, tokens: { access_token: 'x' } } } }],
  [
    'another directory',
    codex,
    { env: { CODEX_HOME: '~/codex' }, files: { '~/codex/auth.json': { OPENAI_API_KEY: 'x' } } },
  ],
  ['a provider without a key', codex, { files: { [CONFIG_FILE]: FAKE_PROVIDER } }],
  [
    'a provider with a key',
    codex,
    { env: { MINE: 'x' }, files: { [CONFIG_FILE]: `${FAKE_PROVIDER}env_key = "MINE"\n` } },
  ],
  [
    'a provider in an inline table',
    codex,
    {
      env: { MINE: 'x' },
      files: {
        [CONFIG_FILE]:
          'model_provider = \'mine\' # local\nmodel_providers = { mine = { env_key = "MINE" } }\n',
      },
    },
  ],
  [
    'a provider with a quoted name',
    codex,
    { files: { [CONFIG_FILE]: 'model_provider = "my one"\n[model_providers."my one"]\n' } },
  ],
  [
    'a provider of the selected profile',
    codex,
    {
      files: {
        [CONFIG_FILE]:
          'profile = "local"\n[profiles.local]\nmodel_provider = "mine"\n[model_providers.mine]\nname = "Mine"\n',
      },
    },
  ],
  [
    'numbers and dates that JSON does not have',
    codex,
    { files: { [CONFIG_FILE]: `n = 9223372036854775807\nat = 2030-01-01\n${FAKE_PROVIDER}` } },
  ],
  ['a backend', codex, { model: 'amazon-bedrock/x', env: { AWS_PROFILE: 'x' } }],
]
const SIGNED_OUT: [string, Provider, Case][] = [
  ['nothing', claude, {}],
  ['an empty variable', claude, { env: { ANTHROPIC_API_KEY: ' ' } }],
  ['an empty file', claude, { files: { [CLAUDE_FILE]: '' } }],
  ['a sign-out', claude, { files: { [CLAUDE_FILE]: { claudeAiOauth: { accessToken: '' } } } }],
  ['broken files', claude, { files: { [CLAUDE_FILE]: '{', '~/.claude/settings.json': '[]' } }],
  ['Bedrock without a credential', claude, { env: { CLAUDE_CODE_USE_BEDROCK: '1', ANTHROPIC_API_KEY: 'x' } }],
  ['a backend', claude, { model: 'deepseek/x', env: { ANTHROPIC_API_KEY: 'x' } }],
  ['nothing', codex, {}],
  ['a file without a credential', codex, { files: { [CODEX_FILE]: {} } }],
  [
    'empty tokens',
    codex,
    { files: { [CODEX_FILE]: { OPENAI_API_KEY: null, tokens: { access_token: '' } } } },
  ],
  [
    'a provider whose key is missing',
    codex,
    { files: { [CONFIG_FILE]: `${FAKE_PROVIDER}env_key = "MINE"\n[other]\n` } },
  ],
  ['a provider without a definition', codex, { files: { [CONFIG_FILE]: 'model_provider = "mine"\n' } }],
  ['a provider in a string', codex, { files: { [CONFIG_FILE]: `notes = """\n${FAKE_PROVIDER}"""\n` } }],
  [
    'a configuration that is not valid TOML',
    codex,
    { files: { [CONFIG_FILE]: `${FAKE_PROVIDER}[broken\n` } },
  ],
  [
    'a provider of another profile',
    codex,
    {
      files: {
        [CONFIG_FILE]: '[profiles.local]\nmodel_provider = "mine"\n[model_providers.mine]\nname = "Mine"\n',
      },
    },
  ],
  [
    'a provider that needs a sign-in',
    codex,
    { files: { [CONFIG_FILE]: `${FAKE_PROVIDER}requires_openai_auth = true\n` } },
  ],
  ['a backend', codex, { model: 'openrouter/x', env: { OPENAI_API_KEY: 'x' } }],
]

for (const [expected, cases] of [
  [true, SIGNED_IN],
  [false, SIGNED_OUT],
] as const) {
  t.test(expected ? 'signed in' : 'not signed in', async (t) => {
    for (const [name, provider, input] of cases)
      t.equal(await isSignedIn(provider, input), expected, `${provider.name}: ${name}`)
  })
}

t.test('the watched files are those that are read', async (t) => {
  for (const [, provider, { env = {}, files = {} }] of SIGNED_IN) {
    const watched = provider.credentialFiles({ HOME: '/home/user', ...env })
    for (const path of Object.keys(files)) t.ok(watched.includes(path.replace('~', '/home/user')), path)
  }
})

t.test('the hint is about the backend of the model', async (t) => {
  for (const provider of [claude, codex]) {
    t.match(
      provider.signInHint(null),
      /^Keep the key off the box: `box secrets set (ANTHROPIC|OPENAI)_API_KEY`, then `box mount BOX/,
    )
    t.match(provider.signInHint(selectModel('openrouter/x')), /OPENROUTER_API_KEY/)
  }
})
