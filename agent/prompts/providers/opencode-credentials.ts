// Whether OpenCode has a credential: its auth.json, its configuration and the environment.
import { join } from 'node:path'
import {
  type ApiKeyVariables,
  COMMON_API_KEY_VARIABLES,
  createSignInHint,
  hasAnyKey,
  providerOf,
  variablesOf,
} from './api-key-variables.ts'
import {
  backendCredentialFiles,
  type Environment,
  hasAwsVariables,
  hasBackendCredential,
  hasVariable,
  homeDirectory,
  resolveInHome,
} from './backend-credentials.ts'
import { nonBlankStringAt, objectAt, parseCommentedJsonObject, parseJsonObject } from './json-fields.ts'
import type { CredentialInput, ModelSelection } from './types.ts'

const API_KEYS: ApiKeyVariables = {
  ...COMMON_API_KEY_VARIABLES,
  google: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_API_KEY'],
  zai: ['ZHIPU_API_KEY'],
  vercel: ['AI_GATEWAY_API_KEY'],
  togetherai: ['TOGETHER_API_KEY'],
  'fireworks-ai': ['FIREWORKS_API_KEY'],
}
/** OpenCode's own provider has models that need no key. */
const FREE_PROVIDER = 'opencode'

const authFile = (env: Environment) =>
  join(
    resolveInHome(env, env.XDG_DATA_HOME || join(homeDirectory(env), '.local/share')),
    'opencode/auth.json',
  )

function configFiles(env: Environment): string[] {
  const directory = join(resolveInHome(env, env.XDG_CONFIG_HOME || '.config'), 'opencode')
  const files = ['config.json', 'opencode.json', 'opencode.jsonc'].map((name) => join(directory, name))
  return env.OPENCODE_CONFIG ? [...files, resolveInHome(env, env.OPENCODE_CONFIG)] : files
}

export function opencodeCredentialFiles(env: Environment): string[] {
  return [authFile(env), ...configFiles(env), ...backendCredentialFiles(env)]
}

export async function isOpencodeSignedIn({ model, env, readText }: CredentialInput): Promise<boolean> {
  const auth = parseJsonObject(env.OPENCODE_AUTH_CONTENT || ((await readText(authFile(env))) ?? '')) ?? {}
  const texts = await Promise.all(configFiles(env).map(readText))
  const configs = [...texts, env.OPENCODE_CONFIG_CONTENT ?? null].map(
    (text) => parseCommentedJsonObject(text ?? '') ?? {},
  )
  const configuredModel = configs.map((config) => nonBlankStringAt(config, 'model')).findLast(Boolean)
  const provider = providerOf(model?.full ?? configuredModel ?? '')
  const providers = configs.map((config) => objectAt(config, 'provider'))
  if (provider === null)
    return (
      Object.values(auth).some(isCredential) ||
      providers.some((configured) => Object.values(configured).some(hasConfiguredKey)) ||
      hasAnyKey(API_KEYS, env) ||
      hasVariable(env, 'OPENCODE_API_KEY') ||
      hasAwsVariables(env)
    )
  if (isCredential(auth[provider])) return true
  if (providers.some((configured) => hasConfiguredKey(configured[provider]))) return true
  if (provider === 'amazon-bedrock') return hasBackendCredential(provider, { env, readText })
  if (provider === FREE_PROVIDER) return true
  const variables = variablesOf(API_KEYS, provider)
  // The configuration of the project or a plugin may define further providers. Some of them need no key.
  return variables === null || variables.some((name) => hasVariable(env, name))
}

export const opencodeSignInHint = (model: ModelSelection | null): string =>
  createSignInHint(API_KEYS, model, '`opencode auth login` on the box')

function hasConfiguredKey(provider: unknown): boolean {
  return nonBlankStringAt(provider, 'options', 'apiKey') !== null
}

/** An entry of auth.json: {type: api, key}, {type: oauth, refresh, access} or {type: wellknown, token}. */
function isCredential(entry: unknown): boolean {
  return ['key', 'access', 'refresh', 'token'].some((field) => nonBlankStringAt(entry, field) !== null)
}
