// The trust policy that a role needs, to copy. Shown on demand.
import { formatTrustPolicy, type PolicyFacts } from '../../data/aws.ts'
import { showHiddenInOutput } from '../../data/visible-text.ts'
import { CopyButton } from '../command.tsx'

type TrustPolicyProps = {
  facts: PolicyFacts
  /** Absent: the policy of any account. */
  roleArn?: string
}

export function TrustPolicy({ facts, roleArn }: TrustPolicyProps) {
  const text = formatTrustPolicy(facts, roleArn)
  return (
    <details class="trust-policy">
      <summary>
        {roleArn === undefined ? 'Trust policy of a role' : 'Trust policy that the role needs'}
      </summary>
      <pre>{showHiddenInOutput(text)}</pre>
      <p class="tools">
        <CopyButton text={text} label="the trust policy" />
        <small>
          {roleArn === undefined && 'ACCOUNT_ID is the number of your account. '}
          Keep both conditions: without the subject, the boxes of every workspace could assume the role.
        </small>
      </p>
    </details>
  )
}
