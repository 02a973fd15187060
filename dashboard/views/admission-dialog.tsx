// A dialog whose request creates or resizes a box. It says which tiers will probably be refused, and why the request will be.
import { type AdmissionRequest, type AdmissionRules, explainRefusal, refuseTier } from '../data/admission.ts'
import { boxes } from '../data/live.ts'
import { loadAdmissionRules } from '../data/load-admission-rules.ts'
import { FormDialog, type FormDialogProps, type FormValues } from './form-dialog.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'

export type ToAdmission = (values: FormValues) => AdmissionRequest

export type AdmissionDialogProps = FormDialogProps & { toAdmission: ToAdmission }

export function AdmissionDialog({ toAdmission, children, ...props }: AdmissionDialogProps) {
  const { value: rules, error } = useLoaded(loadAdmissionRules)
  return (
    <FormDialog {...props} {...(rules && explainAdmission(toAdmission, rules))}>
      {children}
      <Problem error={error} />
    </FormDialog>
  )
}

/** The tier is the value of the field `tier`. */
export const explainAdmission = (
  toAdmission: ToAdmission,
  rules: AdmissionRules,
): Pick<FormDialogProps, 'explain' | 'explainOption'> => ({
  explain: (values) => explainRefusal(toAdmission(values), rules, boxes.value?.values() ?? []),
  explainOption(name, value, values) {
    const { tier, ...request } = toAdmission({ ...values, [name]: value })
    return name !== 'tier' || tier === null
      ? null
      : (refuseTier(tier, { tier, ...request }, rules)?.label ?? null)
  },
})
