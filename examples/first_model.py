"""Learn the digits of scikit-learn, and name images that were not learned from. The README shows this file."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from wsabie import Wsabie

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = Wsabie().fit(X_train, y_train)
print("labels of five images:", model.predict(X_test[:5]))
print(f"right: {(model.predict(X_test) == y_test).mean():.0%} of {len(y_test)}")
