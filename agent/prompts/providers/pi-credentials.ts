// Whether pi has a credential: its auth.json, its models.json and the environment.
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
  resolveInHome,
} from './backend-credentials.ts'
import { nonBlankStringAt, objectAt, parseCommentedJsonObject, parseJsonObject } from './json-fields.ts'
import type { CredentialInput, ModelSelection } from './types.ts'

const API_KEYS: ApiKeyVariables = {
  ...COMMON_API_KEY_VARIABLES,
  anthropic: ['ANTHROPIC_API_KEY', 'ANTHROPIC_OAUTH_TOKEN', 'ANTHROPIC_AUTH_TOKEN'],
  zai: ['ZAI_API_KEY'],
  opencode: ['OPENCODE_API_KEY'],
  'vercel-ai-gateway': ['AI_GATEWAY_API_KEY'],
  'github-copilot': ['COPILOT_GITHUB_TOKEN'],
  'kimi-coding': ['KIMI_API_KEY'],
  fireworks: ['FIREWORKS_API_KEY'],
  together: ['TOGETHER_API_KEY'],
  minimax: ['MINIMAX_API_KEY'],
}
/** Providers that are only signed in to with auth.json. */
const SIGN_IN_PROVIDERS = new Set(['openai-codex'])

const fileIn = (env: Environment, name: string) =>
  join(resolveInHome(env, env.PI_CODING_AGENT_DIR || '.pi/agent'), name)

export function piCredentialFiles(env: Environment): string[] {
  return [fileIn(env, 'auth.json'), fileIn(env, 'models.json'), ...backendCredentialFiles(env)]
}

export async function isPiSignedIn({ model, env, readText }: CredentialInput): Promise<boolean> {
  const [authText, modelsText] = await Promise.all([
    readText(fileIn(env, 'auth.json')),
    readText(fileIn(env, 'models.json')),
  ])
  // pi creates auth.json as {}: the file alone means nothing.
  const auth = parseJsonObject(authText ?? '') ?? {}
  const models = parseCommentedJsonObject(modelsText ?? '') ?? {}
  const providers = objectAt(models, 'providers')
  const provider = providerOf(model?.full ?? '')
  if (provider === null)
    return (
      Object.values(auth).some(isCredential) ||
      Object.values(providers).some(hasConfiguredKey) ||
      hasAnyKey(API_KEYS, env) ||
      hasAwsVariables(env)
    )
  if (isCredential(auth[provider]) || hasConfiguredKey(providers[provider])) return true
  if (provider === 'amazon-bedrock') return hasBackendCredential(provider, { env, readText })
  if (SIGN_IN_PROVIDERS.has(provider)) return false
  const variables = variablesOf(API_KEYS, provider)
  // An extension may define further providers with an authentication of their own.
  return variables === null || variables.some((name) => hasVariable(env, name))
}

export const piSignInHint = (model: ModelSelection | null): string =>
  createSignInHint(API_KEYS, model, '`pi` on the box and send /login')

function hasConfiguredKey(provider: unknown): boolean {
  return nonBlankStringAt(provider, 'apiKey') !== null
}

/** An entry of auth.json: {type: api_key, key} or {type: oauth, refresh, access}. */
function isCredential(entry: unknown): boolean {
  return ['key', 'access', 'refresh'].some((field) => nonBlankStringAt(entry, field) !== null)
}
