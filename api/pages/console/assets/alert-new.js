// The page with the form of a new alert.
import { followAlertForm } from './alert-form.js';

const form = document.querySelector('form.alert-new');
const followed = form && followAlertForm(form);
// The page with a trial has its firings.
if (followed && form.querySelector('[data-trial]').childElementCount === 0) followed.refresh();
