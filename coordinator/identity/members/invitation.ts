// The mail that invites a person to a workspace.

export type InvitationMail = { to: string; subject: string; text: string }

type InvitationOptions = { email: string; workspaceName: string; role: string; publicUrl: string }

const ROLE_NAMES: Readonly<Record<string, string>> = {
  owner: 'an owner',
  member: 'a member',
  contractor: 'a contractor',
}

/** @param options.publicUrl the URL of the coordinator, without a slash at its end */
export const writeInvitation = ({
  email,
  workspaceName,
  role,
  publicUrl,
}: InvitationOptions): InvitationMail => ({
  to: email,
  subject: `Invitation to the workspace ${workspaceName}`,
  text: `You have been invited to the workspace "${workspaceName}" as ${ROLE_NAMES[role] ?? role}.

Sign in with this email address to accept:
${publicUrl}/sign-in

If you do not expect this invitation, ignore this mail.
`,
})
