// Credentials of Codex: variables, the file of its sign-in, and a model provider of its configuration.
import { join } from 'node:path'
import { parse } from 'smol-toml'
import {
  backendCredentialFiles,
  backendSignInHint,
  type CredentialSources,
  hasBackendCredential,
  hasVariable,
  homeDirectory,
  mountKeyHint,
  resolveInHome,
} from './backend-credentials.ts'
import {
  isJsonObject,
  isTrueAt,
  nonBlankStringAt,
  objectAt,
  parseJsonObject,
  stringAt,
  valueAt,
} from './json-fields.ts'
import type { CredentialInput, JsonObject, ModelSelection } from './types.ts'

const OWN_VARIABLES = ['CODEX_API_KEY', 'CODEX_ACCESS_TOKEN']
/** Codex itself ignores OPENAI_API_KEY: see codexCredentialVariables(). */
const VARIABLES = [...OWN_VARIABLES, 'OPENAI_API_KEY']

function paths(env: CredentialInput['env']) {
  const dir = env.CODEX_HOME ? resolveInHome(env, env.CODEX_HOME) : join(homeDirectory(env), '.codex')
  return { auth: join(dir, 'auth.json'), config: join(dir, 'config.toml') }
}

export function codexCredentialFiles(env: CredentialInput['env']): string[] {
  return [...Object.values(paths(env)), ...backendCredentialFiles(env)]
}

export async function isCodexSignedIn({ model, env, readText }: CredentialInput): Promise<boolean> {
  if (model?.backend) return hasBackendCredential(model.backend, { env, readText })
  if (VARIABLES.some((name) => hasVariable(env, name))) return true
  if (await hasStoredCredential({ env, readText })) return true
  return hasConfiguredProvider((await readText(paths(env).config)) ?? '', env)
}

/** `codex login status` accepts {}, but requests fail. */
async function hasStoredCredential({ env, readText }: CredentialSources): Promise<boolean> {
  const auth = parseJsonObject((await readText(paths(env).auth)) ?? '')
  const tokens = objectAt(auth, 'tokens')
  return (
    nonBlankStringAt(auth, 'OPENAI_API_KEY') !== null ||
    nonBlankStringAt(tokens, 'access_token') !== null ||
    nonBlankStringAt(tokens, 'refresh_token') !== null
  )
}

/** CODEX_API_KEY overrides a sign-in, and would charge another account. */
export async function codexCredentialVariables(input: CredentialInput): Promise<Record<string, string>> {
  const { env } = input
  if (!hasVariable(env, 'OPENAI_API_KEY')) return {}
  if (OWN_VARIABLES.some((name) => hasVariable(env, name)) || (await hasStoredCredential(input))) return {}
  return { CODEX_API_KEY: env.OPENAI_API_KEY ?? '' }
}

/**
 * Whether config.toml selects a model provider with a credential: a key in the environment, or none because the provider
 * needs none.
 */
function hasConfiguredProvider(text: string, env: CredentialInput['env']): boolean {
  const config = parseToml(text)
  const profile = stringAt(config, 'profile') ?? ''
  const name =
    nonBlankStringAt(config, 'profiles', profile, 'model_provider') ??
    nonBlankStringAt(config, 'model_provider')
  if (name === null || name === 'openai') return false
  const provider = valueAt(config, 'model_providers', name)
  if (!isJsonObject(provider) || isTrueAt(provider, 'requires_openai_auth')) return false
  const variable = nonBlankStringAt(provider, 'env_key')
  return variable === null || hasVariable(env, variable)
}

/** Returns null when the text is not valid TOML. */
function parseToml(text: string): JsonObject | null {
  try {
    return parse(text, { integersAsBigInt: 'asNeeded' })
  } catch {
    return null
  }
}

export function codexSignInHint(model: ModelSelection | null): string {
  if (model?.backend) return backendSignInHint(model.backend)
  return `${mountKeyHint('OPENAI_API_KEY')} Or run \`codex login --device-auth\` on the box.`
}
