// Home directories in which the real coding agents use the fake model server.
//
//   const cli = createCliHome(t, 'pi', models)
//   cli.env     HOME and further variables of the CLI, without PATH
//   cli.cwd     an empty directory to run in
//   cli.model   a model that the CLI sends to the server
//
// ~/.profile sets the same variables and the PATH of the coding agents, for runs that an agent starts with a login shell.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { ModelServer } from '../model-server/model-server.ts'
import { createTempDir } from '../temp-dir.ts'
import { CODING_AGENTS_PATH } from './install-coding-agents.ts'

export type CliHome = { home: string; cwd: string; env: Record<string, string>; model: string }

type ConfiguredCli = { files: Record<string, unknown>; env: Record<string, string>; model: string }

/** Files (path under HOME → text, or an object for JSON), variables and the model of each CLI. */
const CONFIGURATIONS: Record<ProviderName, (url: string) => ConfiguredCli> = {
  claude: (url) => ({
    files: {},
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'test-key',
      // Otherwise a failure of the model takes three minutes.
      CLAUDE_CODE_MAX_RETRIES: '1',
    },
    model: 'claude-sonnet-5-5',
  }),
  codex: (url) => ({
    files: {
      '.codex/config.toml': `model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "${url}/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`,
    },
    env: { CODEX_API_KEY: 'test-key' },
    model: 'fake-model',
  }),
  opencode: (url) => ({
    files: {
      '.config/opencode/opencode.json': {
        provider: {
          fake: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${url}/v1`, apiKey: 'test-key' },
            models: { 'fake-model': {} },
          },
        },
      },
    },
    env: {},
    model: 'fake/fake-model',
  }),
  pi: (url) => ({
    files: {
      '.pi/agent/models.json': {
        providers: {
          fake: {
            baseUrl: `${url}/v1`,
            api: 'openai-completions',
            apiKey: 'test-key',
            models: [{ id: 'fake-model', reasoning: true }],
          },
        },
      },
    },
    env: {},
    model: 'fake/fake-model',
  }),
}

export function createCliHome(
  t: { teardown(callback: () => unknown): void },
  provider: ProviderName,
  models: Pick<ModelServer, 'url'>,
): CliHome {
  const { files, env: variables, model } = CONFIGURATIONS[provider](models.url)
  const dir = createTempDir(t, `${provider}-home`)
  const home = join(dir, 'home')
  const cwd = join(dir, 'project')
  // Codex refuses to create its sandbox helpers when its home directory is inside TMPDIR.
  const tmp = join(dir, 'tmp')
  const env = { HOME: home, TMPDIR: tmp, ...variables }
  for (const path of [home, cwd, tmp]) mkdirSync(path)
  const profile = Object.entries({ ...env, PATH: CODING_AGENTS_PATH }).map(
    ([name, value]) => `export ${name}='${value}'\n`,
  )
  for (const [path, content] of Object.entries({ ...files, '.profile': profile.join('') })) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return { home, cwd, env, model }
}
