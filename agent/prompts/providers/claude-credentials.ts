// Credentials of Claude Code: variables, the files of its sign-in, and its settings.
import { join } from 'node:path'
import {
  backendCredentialFiles,
  backendSignInHint,
  hasBackendCredential,
  hasVariable,
  homeDirectory,
  mountKeyHint,
  resolveInHome,
} from './backend-credentials.ts'
import { nonBlankStringAt, objectAt, parseJsonObject } from './json-fields.ts'
import type { CredentialInput, JsonObject, ModelSelection } from './types.ts'

const VARIABLES = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN']
/** Clouds whose credentials are not known here. */
const OTHER_CLOUDS = ['CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY']

function paths(env: CredentialInput['env']) {
  const custom = env.CLAUDE_CONFIG_DIR
  const dir = custom ? resolveInHome(env, custom) : join(homeDirectory(env), '.claude')
  return {
    credentials: join(dir, '.credentials.json'),
    settings: join(dir, 'settings.json'),
    /** The file with the API key that a sign-in through the Anthropic Console creates. */
    state: custom ? join(dir, '.claude.json') : join(homeDirectory(env), '.claude.json'),
  }
}

export function claudeCredentialFiles(env: CredentialInput['env']): string[] {
  return [...Object.values(paths(env)), ...backendCredentialFiles(env)]
}

export async function isClaudeSignedIn({ model, env, readText }: CredentialInput): Promise<boolean> {
  if (model?.backend) return hasBackendCredential(model.backend, { env, readText })
  const readJson = async (path: string): Promise<JsonObject> =>
    parseJsonObject((await readText(path)) ?? '') ?? {}
  const files = paths(env)
  const settings = await readJson(files.settings)
  const variables = { ...env, ...stringsOf(objectAt(settings, 'env')) }
  if (isEnabled(variables.CLAUDE_CODE_USE_BEDROCK))
    return hasBackendCredential('amazon-bedrock', { env: variables, readText })
  if (OTHER_CLOUDS.some((name) => isEnabled(variables[name]))) return true
  if (VARIABLES.some((name) => hasVariable(variables, name))) return true
  if (nonBlankStringAt(settings, 'apiKeyHelper') !== null) return true
  // After a sign-out the file remains, with empty strings or as {}.
  if (nonBlankStringAt(await readJson(files.credentials), 'claudeAiOauth', 'accessToken') !== null)
    return true
  return nonBlankStringAt(await readJson(files.state), 'primaryApiKey') !== null
}

export function claudeSignInHint(model: ModelSelection | null): string {
  if (model?.backend) return backendSignInHint(model.backend)
  return `${mountKeyHint('ANTHROPIC_API_KEY')} Or run \`claude\` on the box and enter /login, or set CLAUDE_CODE_OAUTH_TOKEN in the environment of the box.`
}

const stringsOf = (object: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(object).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )

const isEnabled = (value: string | undefined): boolean =>
  ['1', 'true', 'yes', 'on'].includes((value ?? '').trim().toLowerCase())
