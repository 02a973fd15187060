// Decides whom the policies for members limit.
import type { Actor } from '../http/actor.ts'

/**
 * Members and contractors are limited, owners are not. A key without a user has the permissions of a member, but no boxes and
 * no spend of its own: it is not limited.
 */
export const isLimitedMember = ({ userId, role }: Actor): boolean => userId !== null && role !== 'owner'
