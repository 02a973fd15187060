// The variable with which OpenCode and pi use the files of the AWS tools.
import { hasAwsVariables } from './backend-credentials.ts'
import type { CommandOptions } from './types.ts'

/** OpenCode and pi ignore ~/.aws/credentials unless a profile is selected. */
export function awsProfile({ model, env }: Pick<CommandOptions, 'model' | 'env'>): Record<string, string> {
  return model?.backend === 'amazon-bedrock' && !hasAwsVariables(env) ? { AWS_PROFILE: 'default' } : {}
}
