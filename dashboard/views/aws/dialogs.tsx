// The dialogs of AWS roles: connect one, create a link, verify and disconnect.
import type { AwsRole } from '../../../shared/api/federation.ts'
import { formatConnectCommand, type OpenLink, type PolicyFacts } from '../../data/aws.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import type { DialogProps } from '../use-dialog.tsx'
import { TrustPolicy } from './trust-policy.tsx'

/** @param role that was connected by its ARN */
export type OnDone = (message: string, role?: AwsRole) => Promise<void>

const PROFILE = {
  name: 'profile',
  label: 'Profile',
  hint: 'The name in ~/.aws/config of the boxes. Without one: default, or the name of the role',
}

const describeVerification = ({ verifiedArn, verifyError }: AwsRole): string =>
  verifyError === null
    ? `AWS has confirmed it as ${showHidden(verifiedArn ?? 'unknown')}.`
    : `AWS does not let the workspace assume the role: ${showHidden(verifyError)}`

export const createConnectDialog = (facts: PolicyFacts, onDone: OnDone): DialogProps => ({
  title: 'Connect an AWS role',
  children: (
    <>
      <p>
        The role must trust this workspace. It is verified at once, and connected even if AWS refuses: change
        its trust policy, and verify it again.
      </p>
      <TrustPolicy facts={facts} />
    </>
  ),
  fields: [
    {
      name: 'roleArn',
      label: 'ARN of the role',
      hint: 'Such as arn:aws:iam::123456789012:role/deploy',
    },
    PROFILE,
  ],
  submitLabel: 'Connect',
  accepts: (values) => Boolean(values.roleArn?.trim()),
  formatCommand: ({ roleArn, profile }) => formatConnectCommand(roleArn?.trim() || 'ROLE_ARN', profile),
  async submit({ roleArn = '', profile }) {
    const { role } = await getWorkspaceClient().connectAwsRole({
      roleArn: roleArn.trim(),
      ...(profile && { profile }),
    })
    await onDone(`${showHidden(role.profile)} is connected. ${describeVerification(role)}`, role)
  },
})

export const createLinkDialog = (onCreated: (link: OpenLink) => void): DialogProps => ({
  title: 'Create a role in AWS',
  children: (
    <p>
      A link opens a filled-in stack in the console of AWS, which creates the role and connects it. It works
      once, and cancels the previous link of the workspace.
    </p>
  ),
  fields: [PROFILE],
  submitLabel: 'Create the link',
  formatCommand: ({ profile }) => formatConnectCommand(null, profile),
  async submit({ profile }) {
    const client = getWorkspaceClient()
    const { roles } = await client.listAwsRoles()
    const link = await client.createAwsConnect(profile ? { profile } : {})
    onCreated({ ...link, knownIds: new Set(roles.map(({ id }) => id)) })
  },
})

export const createVerifyDialog = ({ id, profile }: AwsRole, onDone: OnDone): DialogProps => ({
  title: `Verify the role of the profile ${showHidden(profile)}`,
  children: <p>Assumes the role once, as the workspace.</p>,
  fields: [],
  submitLabel: 'Verify',
  formatCommand: () => formatCommandLine('box', 'aws', 'verify', profile),
  async submit() {
    const { role } = await getWorkspaceClient().verifyAwsRole(id)
    await onDone(`${showHidden(profile)}: ${describeVerification(role)}`)
  },
})

export const createDisconnectDialog = ({ id, profile }: AwsRole, onDone: OnDone): DialogProps => ({
  title: `Disconnect the role of the profile ${showHidden(profile)}`,
  children: (
    <p>
      Boxes lose the profile. The role stays in AWS. Credentials that a box has from AWS are valid until they
      expire: change the trust policy of the role to end them earlier.
    </p>
  ),
  fields: [],
  submitLabel: 'Disconnect',
  formatCommand: () => formatCommandLine('box', 'aws', 'disconnect', profile),
  async submit() {
    await getWorkspaceClient().disconnectAwsRole(id)
    await onDone(`${showHidden(profile)} was disconnected.`)
  },
})
