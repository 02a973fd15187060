// Credentials of the backends that the prefix of a model selects, and readers of environment variables.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Backend } from '../../../shared/field-values.ts'
import type { CredentialInput } from './types.ts'

export type Environment = CredentialInput['env']
export type CredentialSources = Pick<CredentialInput, 'env' | 'readText'>

const AWS_VARIABLES = [
  'AWS_BEARER_TOKEN_BEDROCK',
  'AWS_ACCESS_KEY_ID',
  'AWS_PROFILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
] as const
/** Keys of the two files of the AWS tools that lead to a credential. */
const AWS_CREDENTIAL_LINE =
  /^\s*(aws_access_key_id|credential_process|sso_session|sso_start_url|role_arn|web_identity_token_file)\s*=\s*\S/m

export function homeDirectory(env: Environment): string {
  return env.HOME || homedir()
}

/** Resolves ~ and relative paths under the home directory. */
export function resolveInHome(env: Environment, path: string): string {
  return resolve(homeDirectory(env), path.replace(/^~(?=\/|$)/, '.'))
}

export function hasVariable(env: Environment, name: string): boolean {
  return (env[name] ?? '').trim() !== ''
}

/** Whether the environment selects a credential of AWS. The files alone need a profile. */
export function hasAwsVariables(env: Environment): boolean {
  return AWS_VARIABLES.some((name) =>
    name === 'AWS_ACCESS_KEY_ID'
      ? hasVariable(env, name) && hasVariable(env, 'AWS_SECRET_ACCESS_KEY')
      : hasVariable(env, name),
  )
}

/** Absolute paths of the files that `hasBackendCredential` reads. */
export function backendCredentialFiles(env: Environment): string[] {
  const directory = join(homeDirectory(env), '.aws')
  return [
    resolveInHome(env, env.AWS_SHARED_CREDENTIALS_FILE || join(directory, 'credentials')),
    resolveInHome(env, env.AWS_CONFIG_FILE || join(directory, 'config')),
  ]
}

export async function hasBackendCredential(
  backend: Backend,
  { env, readText }: CredentialSources,
): Promise<boolean> {
  if (backend === 'openrouter') return hasVariable(env, 'OPENROUTER_API_KEY')
  if (backend === 'deepseek') return hasVariable(env, 'DEEPSEEK_API_KEY')
  if (hasAwsVariables(env)) return true
  const texts = await Promise.all(backendCredentialFiles(env).map(readText))
  return texts.some((text) => text !== null && AWS_CREDENTIAL_LINE.test(text))
}

/** How to let a coding agent use a key that no process of the box has. @param text such as `the key` */
export const mountKeyHint = (variable: string, text = 'the key'): string =>
  `Keep ${text} off the box: \`box secrets set ${variable}\`, then \`box mount BOX ${variable}\`.`

/** What to do when the backend has no credential. */
export function backendSignInHint(backend: Backend): string {
  if (backend === 'openrouter') return mountKeyHint('OPENROUTER_API_KEY')
  if (backend === 'deepseek') return mountKeyHint('DEEPSEEK_API_KEY')
  return 'Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and AWS_REGION in the environment of the box, or create ~/.aws/credentials.'
}
