// Environment variables with API keys, by the provider ids that OpenCode and pi have in common.
import { backendSignInHint, type Environment, hasVariable, mountKeyHint } from './backend-credentials.ts'
import type { ModelSelection } from './types.ts'

export type ApiKeyVariables = Readonly<Record<string, readonly string[]>>

export const COMMON_API_KEY_VARIABLES: ApiKeyVariables = {
  anthropic: ['ANTHROPIC_API_KEY'],
  openai: ['OPENAI_API_KEY'],
  google: ['GEMINI_API_KEY'],
  openrouter: ['OPENROUTER_API_KEY'],
  deepseek: ['DEEPSEEK_API_KEY'],
  groq: ['GROQ_API_KEY'],
  xai: ['XAI_API_KEY'],
  mistral: ['MISTRAL_API_KEY'],
  cerebras: ['CEREBRAS_API_KEY'],
  moonshotai: ['MOONSHOT_API_KEY'],
  huggingface: ['HF_TOKEN'],
  nvidia: ['NVIDIA_API_KEY'],
}

/** null: the provider is not in the list, so nothing is known about its variables. */
export function variablesOf(list: ApiKeyVariables, provider: string): readonly string[] | null {
  return Object.hasOwn(list, provider) ? (list[provider] ?? null) : null
}

export function hasAnyKey(list: ApiKeyVariables, env: Environment): boolean {
  return Object.values(list).some((names) => names.some((name) => hasVariable(env, name)))
}

/** The provider that a model such as anthropic/claude-sonnet-5-5 names; null: none. */
export function providerOf(model: string): string | null {
  const slash = model.indexOf('/')
  return slash > 0 ? model.slice(0, slash) : null
}

/** What to do without a credential. @param signIn completes "Run …": the sign-in of the CLI on the box */
export function createSignInHint(
  list: ApiKeyVariables,
  model: ModelSelection | null,
  signIn: string,
): string {
  if (model?.backend) return `${backendSignInHint(model.backend)} Or run ${signIn}.`
  const [variable] = variablesOf(list, providerOf(model?.full ?? '') ?? 'anthropic') ?? []
  return variable
    ? `${mountKeyHint(variable, model === null ? `a key, such as ${variable},` : 'the key')} Or run ${signIn}.`
    : `Run ${signIn}.`
}
